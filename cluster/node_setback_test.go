package cluster_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/daybook-data/daybook/cluster"
	"github.com/daybook-data/daybook/cluster/clustertest"
	"github.com/daybook-data/daybook/internal/cable"
)

// A node whose folder was put back to what it was before its last start ends, and the folder does not start again: with the
// votes and acknowledgements that it has forgotten, records of a majority could be lost. With its own folder it goes on.
func TestANodeThatWasSetBackEnds(t *testing.T) {
	t.Parallel()
	c := clustertest.Start(t, 3)
	c.Stop(2)
	old := filepath.Join(t.TempDir(), "old")
	must(t, os.CopyFS(old, os.DirFS(c.Dir(2))))
	c.Restart(2)
	knows(c, 3)
	c.Stop(2)

	o := cluster.Options{Dir: old, Network: &cluster.Network{Timeout: time.Second, Listener: cable.Listen(t, "127.0.0.1:0")}}
	why := unfit(t, c, o)
	for _, want := range []string{"set back", "start 2 of node 3", "daybook cluster remove 3", old} {
		if !strings.Contains(why, want) {
			t.Errorf("it says %q, without %q", why, want)
		}
	}
	o.Network.Listener = cable.Listen(t, "127.0.0.1:0")
	if n, err := cluster.Open(o); !errors.Is(err, cluster.ErrSetBack) {
		t.Errorf("started again: %v, %v", n, err)
	}
	c.Restart(2)
	knows(c, 3)
}

// It is also found when nobody who met the later process is there any more: the metadata has what that said.
func TestTheMetadataKnowsOfLaterStarts(t *testing.T) {
	t.Parallel()
	c := clustertest.Start(t, 3)
	c.Stop(2)
	old := filepath.Join(t.TempDir(), "old")
	must(t, os.CopyFS(old, os.DirFS(c.Dir(2))))
	for range 2 { // the folder's next start is to be one that is known to be over
		c.Restart(2)
		knows(c, 3)
		must(t, c.Node(2).Announce(t.Context(), map[string]string{"kafka": time.Now().String()}))
		c.Stop(2)
	}
	c.Stop(0)
	c.Stop(1)
	c.Begin(0)
	c.Restart(1)
	c.WaitReady(0)
	o := cluster.Options{Dir: old, Network: &cluster.Network{Timeout: time.Second, Listener: cable.Listen(t, "127.0.0.1:0")}}
	if why := unfit(t, c, o); !strings.Contains(why, "set back") {
		t.Errorf("it says %q", why)
	}
}
