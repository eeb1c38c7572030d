"""Checks the DKIM signature of a mail on stdin, by dkimpy. Arguments: the one name that the DNS knows, and its TXT."""

import sys

import dkim

name, record = (argument.encode() for argument in sys.argv[1:3])


def dns(asked, timeout=5):
    return record if asked.rstrip(b".") == name else None


print("valid" if dkim.verify(sys.stdin.buffer.read(), dnsfunc=dns) else "invalid")
