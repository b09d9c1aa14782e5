"""The rows of a campaign into the files of a release, all of one moment."""
