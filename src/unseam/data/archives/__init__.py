"""Official files of data sets, one module a format. None is unpacked whole into memory; none holds a pickle we read."""
