package node

import "errors"

// ErrConfig marks an error that the user mends in a file or on the command line,
// beside those of type configs.Problems.
var ErrConfig = errors.New("configuration")

// ErrEnvironment marks an error of what Daybook needs around it: a folder it may
// not write, a broker or database that can't be reached.
var ErrEnvironment = errors.New("environment")
