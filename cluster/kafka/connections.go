package kafka

import (
	"errors"
	"syscall"
)

// maxConnections is how many clients there may be where nobody says.
const maxConnections = 10_000

// errCrowded is why a connection is closed that is one too many.
var errCrowded = errors.New("as many clients are connected as may be: raise the limit of open files (ulimit -n, LimitNOFILE), of which they may take half, up to 10,000")

// defaultConnections leaves half of the process's descriptors to the journal's files and to the other nodes: a segment that
// can't be opened refuses all appends to its journal.
func defaultConnections() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return maxConnections
	}
	return int(min(maxConnections, max(limit.Cur/2, 1)))
}
