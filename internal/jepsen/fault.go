//go:build linux

package jepsen

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/daybook-data/daybook/internal/jepsen/lab"
)

// A Fault is something that goes wrong for a while.
type Fault struct {
	Name string
	For  time.Duration // from Begin to End
	Rest time.Duration // from End to the next fault

	Begin func(c *Cluster) error
	End   func(c *Cluster) error
}

// particulars are what two faults of one kind differ in: nodes, figures, and what follows a colon.
var particulars = regexp.MustCompile(`:.*|\[[^]]*\]|\S*[0-9]\S*`)

// kind is the fault's name without its particulars.
func (f Fault) kind() string {
	return strings.Join(strings.Fields(particulars.ReplaceAllString(f.Name, "")), " ")
}

// run lets the fault happen. It ends even if ctx does.
func (f Fault) run(ctx context.Context, c *Cluster) error {
	err := f.Begin(c)
	if err == nil {
		wait(ctx, f.For)
	}
	err = errors.Join(err, f.End(c))
	if err != nil {
		return fmt.Errorf("%s: %w", f.Name, err)
	}
	wait(ctx, f.Rest)
	return nil
}

func wait(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// healNetwork ends faults of the network.
func healNetwork(c *Cluster) error {
	c.lab.Network.Heal()
	return nil
}

// cut is a network that does not carry what drop says. Clients are node 0.
func cut(name string, drop func(from, to int) bool) Fault {
	return Fault{Name: name, End: healNetwork, Begin: func(c *Cluster) error {
		c.lab.Network.Each(func(from, to int) lab.Quality { return lab.Quality{Down: drop(from, to)} })
		return nil
	}}
}

// Split cuts a side off the other nodes. Clients reach all.
func Split(side ...int) Fault {
	return cut(fmt.Sprintf("split %v from the others", side), func(from, to int) bool {
		return from != 0 && to != 0 && slices.Contains(side, from) != slices.Contains(side, to)
	})
}

// Isolate cuts nodes off everybody, clients and each other included.
func Isolate(nodes ...int) Fault {
	return cut(fmt.Sprintf("isolate %v", nodes), func(from, to int) bool { return slices.Contains(nodes, from) || slices.Contains(nodes, to) })
}

// Mute lets a node hear the other nodes, which do not hear it.
func Mute(node int) Fault {
	return cut(fmt.Sprintf("mute %d", node), func(from, to int) bool { return from == node && to != 0 })
}

// Deafen lets the other nodes hear a node that does not hear them.
func Deafen(node int) Fault {
	return cut(fmt.Sprintf("deafen %d", node), func(from, to int) bool { return to == node && from != 0 })
}

// Bridge cuts a side off the others, but for one node, which sees both.
func Bridge(bridge int, side ...int) Fault {
	return cut(fmt.Sprintf("split %v from the others, bridged by %d", side, bridge), func(from, to int) bool {
		return from != 0 && to != 0 && from != bridge && to != bridge && slices.Contains(side, from) != slices.Contains(side, to)
	})
}

// Ring lets each node see only the next and the one before: with five, every majority sees another.
func Ring(nodes int) Fault {
	return cut("ring", func(from, to int) bool {
		distance := (from - to + nodes) % nodes
		return from != 0 && to != 0 && distance > 1 && distance < nodes-1
	})
}

// Forsake cuts clients off a node, which the others see.
func Forsake(node int) Fault {
	return cut(fmt.Sprintf("cut clients off %d", node), func(from, to int) bool { return from+to == node && from*to == 0 })
}

// Worsen makes all links lossy and slow.
func Worsen(q lab.Quality) Fault {
	return Fault{Name: fmt.Sprintf("bad links: %+v", q), End: healNetwork, Begin: func(c *Cluster) error {
		c.lab.Network.Each(func(int, int) lab.Quality { return q })
		return nil
	}}
}

// each does something to nodes.
func each(nodes []int, do func(c *Cluster, n int) error) func(*Cluster) error {
	return func(c *Cluster) error {
		var errs []error
		for _, n := range nodes {
			errs = append(errs, do(c, n))
		}
		return errors.Join(errs...)
	}
}

// Pause stops nodes' servers where they are.
func Pause(nodes ...int) Fault {
	return Fault{
		Name:  fmt.Sprintf("pause %v", nodes),
		Begin: each(nodes, func(c *Cluster, n int) error { return c.server(n).Pause() }),
		End:   each(nodes, func(c *Cluster, n int) error { return c.server(n).Resume() }),
	}
}

// Kill kills nodes' servers.
func Kill(nodes ...int) Fault {
	return Fault{Name: fmt.Sprintf("kill %v", nodes), Begin: each(nodes, (*Cluster).kill), End: each(nodes, (*Cluster).start)}
}

// CutPower kills nodes' servers, and what they have not synced is lost.
func CutPower(nodes ...int) Fault {
	return Fault{Name: fmt.Sprintf("cut the power of %v", nodes), Begin: each(nodes, (*Cluster).cutPower), End: each(nodes, (*Cluster).start)}
}

// Fill leaves a node's disk so many bytes.
func Fill(node int, leave int64) Fault {
	return Fault{
		Name:  fmt.Sprintf("fill the disk of %d up to %d bytes", node, leave),
		Begin: func(c *Cluster) error { return c.lab.Machine(node).Disk.Fill(leave) },
		End:   func(c *Cluster) error { return c.lab.Machine(node).Disk.Free() },
	}
}

// Stall makes a node's disk take no write.
func Stall(node int) Fault {
	return Fault{
		Name:  fmt.Sprintf("stall the disk of %d", node),
		Begin: func(c *Cluster) error { return c.lab.Machine(node).Disk.Freeze() },
		End:   func(c *Cluster) error { return c.lab.Machine(node).Disk.Thaw() },
	}
}

// Slow makes a node's disk stop again and again.
func Slow(node int) Fault {
	return again(fmt.Sprintf("slow disk of %d", node), 200*time.Millisecond, func(c *Cluster, _ int) error {
		disk := c.lab.Machine(node).Disk
		err := disk.Freeze()
		time.Sleep(300 * time.Millisecond) // how long it is stopped
		return errors.Join(err, disk.Thaw())
	})
}

// again does something at intervals until the fault's end, with how often it has before.
func again(name string, every time.Duration, do func(c *Cluster, times int) error) Fault {
	quit, done := make(chan struct{}), make(chan error, 1)
	return Fault{
		Name: name,
		Begin: func(c *Cluster) error {
			go func() {
				for i := 0; ; i++ {
					select {
					case <-quit:
						done <- nil
						return
					case <-time.After(every):
					}
					if err := do(c, i); err != nil {
						done <- err
						return
					}
				}
			}()
			return nil
		},
		End: func(*Cluster) error {
			close(quit)
			return <-done
		},
	}
}

// Die makes a node's disk fail every write. It comes back as a power cut leaves it, with a new server.
func Die(node int) Fault {
	return Fault{
		Name: fmt.Sprintf("the disk of %d dies", node),
		Begin: func(c *Cluster) error {
			c.excuse(node)
			return c.lab.Machine(node).Disk.Die()
		},
		End: func(c *Cluster) error { return errors.Join(c.cutPower(node), c.start(node)) },
	}
}
