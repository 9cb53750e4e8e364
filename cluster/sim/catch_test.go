//go:build sim

package sim_test

import (
	"fmt"
	"testing"

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
