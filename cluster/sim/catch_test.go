package sim_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/daybook-data/daybook/storage"
)

// caught runs seeds of a broken system until one shows it.
func caught(t *testing.T, h hooks, kinds ...kind) {
	t.Helper()
	for seed := int64(1); seed <= 30; seed++ {
		var bad []string
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			tr := simulate(t, seed, func(s *settings) {
				s.founders, s.machines, s.mode, s.journal, s.commands, s.kinds, s.retention = 3, 3, storage.Durable, true, false, kinds, 0
			}, h)
			bad = tr.violations()
		})
		if len(bad) > 0 {
			t.Logf("seed %d: %s", seed, bad[0])
			return
		}
	}
	t.Error("no seed shows it: the simulation is blind")
}

// A disk that acknowledges a sync and does nothing loses what was acknowledged when the power fails.
func TestADiskThatLiesIsCaught(t *testing.T) {
	caught(t, hooks{lyingDisks: true}, cutPowerAll)
}

// A client that takes an append for stored when it was only sent believes in what was never there.
func TestAnEarlyAcknowledgementIsCaught(t *testing.T) {
	caught(t, hooks{eager: true}, killMany, isolate)
}

// Bits that flip are mended while the groups work, so that what the seeds show of it is not nothing.
func TestFlippedBitsAreMended(t *testing.T) {
	mended := 0
	for seed := int64(1); seed <= 5; seed++ {
		tr := simulate(t, seed, func(s *settings) {
			s.founders, s.machines, s.journal, s.commands, s.segment, s.retention = 3, 3, true, false, 8<<10, 0
			s.kinds, s.often, s.length = []kind{rot, transferLead, stopOne}, 500*time.Millisecond, 30*time.Second
		}, hooks{})
		if bad := tr.violations(); len(bad) > 0 {
			t.Errorf("seed %d:\n%s\n%v", seed, lines(bad), tr)
		}
		mended += strings.Count(tr.tail(1<<30), "replaced by the bytes of another copy") + strings.Count(tr.tail(1<<30), "mends its journal")
	}
	if mended < 5 {
		t.Errorf("%d damages were mended in 5 seeds, want more", mended)
	}
}

// Command logs that are damaged, running or not, are outlived by their groups, in which members get snapshots of each other.
func TestDamagedCommandLogsAreOutlived(t *testing.T) {
	outlived, givenUp := 0, 0
	for seed := int64(1); seed <= 5; seed++ {
		tr := simulate(t, seed, func(s *settings) {
			s.founders, s.machines, s.journal, s.commands, s.segment, s.snapshotEvery = 3, 3, false, true, 4<<10, 200
			s.kinds, s.often, s.length = []kind{rotCommands, stopOne, isolate}, 500*time.Millisecond, time.Minute
		}, hooks{})
		if bad := tr.violations(); len(bad) > 0 {
			t.Errorf("seed %d:\n%s\n%v", seed, lines(bad), tr)
		}
		outlived += strings.Count(tr.tail(1<<30), "a snapshot of the metadata takes their place")
		givenUp += strings.Count(tr.tail(1<<30), "gives its command log up: <nil>")
	}
	t.Logf("%d damages were outlived, %d logs given up", outlived, givenUp)
	if outlived+givenUp == 0 {
		t.Error("no damage was met in 5 seeds: nothing is shown")
	}
}
