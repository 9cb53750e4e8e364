//go:build linux

package jepsen

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/daybook-data/daybook/internal/jepsen/check"
	"github.com/daybook-data/daybook/internal/jepsen/history"
	"github.com/daybook-data/daybook/internal/jepsen/lab"
	"github.com/daybook-data/daybook/internal/jepsen/workload"
)

// A Trial is one run of a journal under faults.
type Trial struct {
	Name   string
	Binary string // the daybook command
	Nodes  int
	// Replicas is how many each stream has; at most, and by default, as many as there are nodes.
	Replicas int
	// Observers copy, the first from the nodes and each other one from the one before, and clients read from them.
	Observers int
	// TLS makes nodes and observers prove who they are to each other.
	TLS bool
	// Operator changes the cluster meanwhile: moves journals and leads, takes nodes out and lets others in.
	Operator bool
	// Replicated is the mode in which a record is acknowledged from memory; durable by default.
	Replicated bool
	Seed       uint64
	// Faults is how many are drawn from the seed, where Script is empty.
	Faults int
	Script []Fault
	// Dir is where a folder with all there is to know of a failure is made; the system's for temporary files by default.
	Dir string
}

// recovery is how long a journal may take to work again once nothing disturbs it.
const recovery = 2 * time.Minute

// Report is what a trial found.
type Report struct {
	Violations []check.Violation
	Ops        []history.Op
	Timeline   []string       // what went wrong, and what was changed, when
	Faults     map[string]int // how often each kind happened
	Changes    map[string]int // how often the operator brought each change to its end
	Log        []byte         // what the servers said

	mu sync.Mutex // guards Timeline while the trial runs
}

// Run runs the trial. Its error holds the violations, what else went wrong, and where the history is.
func (t Trial) Run(ctx context.Context) (*Report, error) {
	logs, err := os.MkdirTemp(t.Dir, fmt.Sprintf("daybook-jepsen-%s-%d-", t.Name, t.Seed))
	if err != nil {
		return nil, err
	}
	r := &Report{Faults: map[string]int{}}
	err = t.run(ctx, logs, r)
	for _, v := range r.Violations {
		err = errors.Join(err, errors.New(v.String()))
	}
	if err == nil {
		return r, os.RemoveAll(logs)
	}
	return r, errors.Join(fmt.Errorf("trial %s, %d nodes, seed %d: history, faults and logs are in %s", t.Name, t.Nodes, t.Seed, logs), err, r.write(logs))
}

func (t Trial) run(ctx context.Context, logs string, r *Report) (err error) {
	l, err := lab.New(lab.Options{Machines: t.Nodes + t.Observers, Seed: t.Seed, Logs: logs})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	c, err := newCluster(l, t.Binary, logs, t.Nodes, t.TLS)
	if err != nil {
		return err
	}
	defer c.close()
	rec := history.NewRecorder()
	w := workload.New(t.options(c), rec)
	defer func() {
		r.Ops = rec.Ops()
		r.Log = c.said()
		if err != nil {
			err = errors.Join(err, saveFolders(c, logs))
		}
	}()
	start, cancel := context.WithTimeout(ctx, recovery)
	defer cancel()
	if err := w.Setup(start); err != nil {
		return err
	}
	if err := t.disturb(ctx, c, w, rec, r); err != nil {
		return err
	}
	settle, cancel := context.WithTimeout(ctx, recovery)
	defer cancel()
	err = errors.Join(w.Settle(settle), c.selfEnded(), c.raced())
	return errors.Join(err, r.judge(rec.Ops()))
}

func (t Trial) options(c *Cluster) workload.Options {
	replicas := t.Replicas
	if replicas == 0 {
		replicas = t.Nodes
	}
	o := workload.Options{Seeds: c.seeds(), Observers: c.watched(), Dial: c.lab.Dial, Racks: c.racks(), Replicas: int16(replicas), Seed: t.Seed}
	if t.Replicated {
		o.Mode = "replicated"
	}
	return o
}

// disturb lets the clients work while one fault comes after the other, and an operator changes the cluster.
func (t Trial) disturb(ctx context.Context, c *Cluster, w *workload.Workload, rec *history.Recorder, r *Report) error {
	script := t.Script
	if len(script) == 0 {
		script = lots{rand.New(rand.NewPCG(t.Seed, 2)), t.Nodes, t.Observers, !t.Replicated}.draw(t.Faults)
	}
	note := func(what string) { r.note(rec, what) }
	working, stop := context.WithCancel(ctx)
	var all errgroup.Group
	all.Go(func() error { return w.Run(working) })
	o := newOperator(c, t.Seed, t.fewest(), note)
	if t.Operator {
		all.Go(func() error {
			o.run(working)
			return nil
		})
	}
	calm := 2 * time.Second // before the first
	wait(ctx, calm)
	var err error
	for _, f := range script {
		note(fmt.Sprintf("%s, for %s, then rest %s", f.Name, f.For, f.Rest))
		r.Faults[f.kind()]++
		if err = f.run(ctx, c); err != nil {
			break
		}
	}
	stop()
	if err = errors.Join(err, all.Wait()); err != nil || !t.Operator {
		return err
	}
	healed, cancel := context.WithTimeout(ctx, recovery)
	defer cancel()
	r.Changes = o.done
	return o.finish(healed)
}

// fewest is how many copies no change leaves fewer of: where records are acknowledged from memory, one machine's loss of
// power must leave a majority of them.
func (t Trial) fewest() int {
	if t.Replicated {
		return 3
	}
	return 1
}

func (r *Report) note(rec *history.Recorder, what string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Timeline = append(r.Timeline, fmt.Sprintf("%8.3fs %s", time.Duration(rec.Now()).Seconds(), what))
}

// judge runs the whole checker.
func (r *Report) judge(ops []history.Op) error {
	const patience = 2 * time.Minute
	offsets, err := check.Offsets(ops, patience)
	registers, err2 := check.Registers(ops, patience)
	r.Violations = append(append(check.History(ops), offsets...), registers...)
	return errors.Join(err, err2)
}

// Counts returns how many operations of each kind ended in each way, empty polls left out. Polls of observers are counted
// once more, as watches.
func (r *Report) Counts() map[string]int {
	counts := map[string]int{}
	for _, op := range r.Ops {
		if op.Kind != history.Poll || len(op.Reads) > 0 {
			counts[string(op.Kind)+" "+string(op.Outcome)]++
			if op.Kind == history.Poll && workload.OfObserver(op.Session) {
				counts["watch "+string(op.Outcome)]++
			}
		}
	}
	return counts
}

// write leaves all there is to know in a folder.
func (r *Report) write(dir string) error {
	var text strings.Builder
	for _, line := range r.Timeline {
		fmt.Fprintln(&text, line)
	}
	for _, v := range r.Violations {
		fmt.Fprintf(&text, "\n%s\n", v)
	}
	return errors.Join(
		history.WriteFile(filepath.Join(dir, "history.ndjson"), r.Ops),
		os.WriteFile(filepath.Join(dir, "report.txt"), []byte(text.String()), 0o644),
	)
}

// saveFolders copies the nodes' data, as it is.
func saveFolders(c *Cluster, dir string) error {
	var errs []error
	for n := range c.each() {
		m := c.lab.Machine(n)
		data, err := fs.Sub(m.FS(), strings.TrimPrefix(m.Disk.Data(), "/"))
		if err != nil {
			return err
		}
		errs = append(errs, copyFiles(filepath.Join(dir, fmt.Sprintf("data-%d", n)), data))
	}
	return errors.Join(errs...)
}

// copyFiles copies the small files: segments are mostly empty, and the history tells what was in them.
func copyFiles(to string, from fs.FS) error {
	const most = 1 << 20
	return fs.WalkDir(from, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !d.Type().IsRegular() {
			return nil // files come and go under a server
		}
		if info, err := d.Info(); err != nil || info.Size() > most {
			return nil
		}
		data, err := fs.ReadFile(from, name)
		if err != nil {
			return nil
		}
		path := filepath.Join(to, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		return os.WriteFile(path, data, 0o644)
	})
}
