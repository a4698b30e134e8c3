"""Readers of files, one module per format.

All files that others may have written, or that may be damaged, are read here and
validated completely before anything is computed from them. A reader returns valid
content or raises `InputError`, whose one sentence names the file, the record and what
was expected. No reader executes what a file contains, and each bounds the memory that
a small file can claim.
"""
