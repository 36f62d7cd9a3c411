"""Official files of data sets: where they are (`sources`) and how they are downloaded and checked (`fetch`)."""
