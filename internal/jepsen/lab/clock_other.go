//go:build linux && !amd64

package lab

import (
	"fmt"
	"runtime"
	"time"
)

// HasClocks says whether [Machine.SetClock] works on this processor.
const HasClocks = false

// clock is that of the machine everything runs on: the code that shifts it is for another processor.
type clock struct{}

func newClock(int, time.Duration) (*clock, error) { return &clock{}, nil }

func (*clock) set(shift time.Duration) error {
	if shift == 0 {
		return nil
	}
	return fmt.Errorf("machines have no clocks of their own on %s", runtime.GOARCH)
}

func (*clock) close() error { return nil }
