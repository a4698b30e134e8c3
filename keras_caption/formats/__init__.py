"""Readers of files, one module per format.

Files that others may have written, or that may be damaged, are read here and validated
completely before anything is computed from them. A reader returns valid content or
raises `InputError`, whose one sentence names the file, the record and the expected
content. No reader executes code from a file, and each bounds the memory that a small
file can claim.
"""
