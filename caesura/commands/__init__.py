"""This folder holds the commands of the command line that have files of their own."""
