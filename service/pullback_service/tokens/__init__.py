"""Tokens: what programs and people show to be let in; codes with which agents get theirs."""
