//go:build linux

package jepsen

import (
	"fmt"
	"time"
)

// Jump sets nodes' clocks ahead of the others' or, below zero, behind them, and at its end right again.
func Jump(by time.Duration, nodes ...int) Fault {
	return Fault{
		Name:  fmt.Sprintf("the clocks of %v jump by %s", nodes, by),
		Begin: each(nodes, func(c *Cluster, n int) error { return c.lab.Machine(n).SetClock(by) }),
		End:   each(nodes, func(c *Cluster, n int) error { return c.lab.Machine(n).SetClock(0) }),
	}
}

// Misset sets nodes' clocks wrong, and leaves them so.
func Misset(by time.Duration, nodes ...int) Fault {
	f := Jump(by, nodes...)
	f.Name = fmt.Sprintf("the clocks of %v are wrong by %s from now on", nodes, by)
	f.End = func(*Cluster) error { return nil }
	return f
}

// Strobe lets nodes' clocks jump to and fro all the time.
func Strobe(by time.Duration, nodes ...int) Fault {
	f := again(fmt.Sprintf("the clocks of %v jump by %s and back all the time", nodes, by), 20*time.Millisecond, func(c *Cluster, times int) error {
		if times%2 == 0 {
			return Jump(by, nodes...).Begin(c)
		}
		return Jump(by, nodes...).End(c)
	})
	stop := f.End
	f.End = func(c *Cluster) error {
		err := stop(c)
		if right := Jump(by, nodes...).End(c); err == nil {
			err = right
		}
		return err
	}
	return f
}
