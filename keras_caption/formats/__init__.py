"""Readers of files, one module per format.

Everything that the project reads from a file which somebody else may have written,
or which may be damaged, is read here: validated once, completely, before anything is
computed from it. A reader returns valid content or raises `InputError`, whose one
sentence names the file, the record and what was expected. No reader executes what a
file contains, and each bounds the memory that a small file can claim.
"""
