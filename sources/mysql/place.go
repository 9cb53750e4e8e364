package mysql

import (
	"strconv"
	"strings"
)

// place is an offset in a file of the binary log. Offsets have 64 bits: a single
// transaction can make a file longer than the 4 GiB that the protocol counts.
type place struct {
	File string `json:"file"`
	Pos  uint64 `json:"pos"`
}

// before reports whether p comes before q in the log. Files are ordered by the
// number behind the last dot: .999999 comes before .1000000.
func (p place) before(q place) bool {
	if p.File == q.File {
		return p.Pos < q.Pos
	}
	a, okA := fileNumber(p.File)
	b, okB := fileNumber(q.File)
	if !okA || !okB || a == b {
		return p.File < q.File
	}
	return a < b
}

func fileNumber(file string) (uint64, bool) {
	n, err := strconv.ParseUint(file[strings.LastIndexByte(file, '.')+1:], 10, 64)
	return n, err == nil
}

func (p place) String() string { return p.File + ":" + strconv.FormatUint(p.Pos, 10) }
