package reorder_test

import (
	"bufio"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/daybook-data/daybook/reorder"
)

var rewrite = flag.Bool("rewrite", false, "write the scripts' output anew instead of comparing")

// TestScripts runs testdata/*.txt: commands, each followed by what it printed.
//
//	options KEY=VALUE...       b i h (units), cap (bytes), late, implausible, order, future, past
//	assign NAME...
//	in PART[/SOURCE]:TIME[@STAMP]...   positions count from 0 in each partition
//	frontier STAMP | settle | end | flush-idle | bypass | revoke PART | metrics
//	checkpoint                 take one and remember the output so far
//	kill                       go on from the last checkpoint, reading again from there
//	# a comment
//
// Records print as name, position, event time; (t=order time) if it differs; (W=
// watermark missed); ! forced, ~ clamped, ^ passed.
//
// Each script runs with a unit of 1 s, and again with 20 ms, which must not matter.
func TestScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no scripts", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := runScript(t, string(data), time.Second)
			if *rewrite {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if got != string(data) {
				t.Errorf("output differs, got:\n%s", got)
			}
			if again := runScript(t, string(data), 20*time.Millisecond); again != got {
				t.Errorf("output with a unit of 20 ms differs, got:\n%s", again)
			}
		})
	}
}

// script is the state of one run.
type script struct {
	t     *testing.T
	unit  int64
	opts  reorder.Options
	names []string
	buf   *reorder.Buffer[event]
	log   []event // everything pushed, in order
	next  map[string]int64
	saved []byte
	out   []string
}

const scriptBase = 1_000_000_000_000_000

func runScript(t *testing.T, text string, unit time.Duration) string {
	s := &script{t: t, unit: unit.Microseconds(), next: map[string]int64{}}
	var b strings.Builder
	sc := bufio.NewScanner(strings.NewReader(text))
	for sc.Scan() {
		line := sc.Text()
		if strings.HasPrefix(line, "  ") {
			continue // former output
		}
		b.WriteString(line + "\n")
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		words := strings.Fields(line)
		s.out = nil
		s.do(words[0], words[1:])
		for _, o := range s.out {
			b.WriteString("  " + o + "\n")
		}
	}
	return b.String()
}

func (s *script) do(cmd string, args []string) {
	switch cmd {
	case "options":
		s.setOptions(args)
		return
	case "assign":
		s.names = args
		s.open()
		return
	case "in":
		for _, a := range args {
			s.push(s.parse(a))
		}
	case "frontier":
		s.buf.Advance(s.time(args[0]))
	case "settle":
		s.buf.Settle()
	case "end":
		s.buf.End()
	case "flush-idle":
		s.buf.FlushIdle()
	case "bypass":
		s.buf.Bypass()
	case "revoke":
		if err := s.buf.Revoke(s.buf.Assign(args[0])); err != nil {
			s.t.Fatal(err)
		}
	case "metrics":
		s.metrics()
	case "checkpoint":
		s.checkpoint()
	case "kill":
		s.restart()
	default:
		s.t.Fatalf("unknown command %q", cmd)
	}
	s.drain()
}

func (s *script) setOptions(args []string) {
	*s = script{t: s.t, unit: s.unit, next: map[string]int64{}}
	for _, a := range args {
		k, v, _ := strings.Cut(a, "=")
		n, _ := strconv.ParseInt(v, 10, 64)
		d := time.Duration(n*s.unit) * time.Microsecond
		disposal := map[string]reorder.Disposal{"side": reorder.Side, "pass": reorder.Pass, "drop": reorder.Drop, "clamp": reorder.Clamp}[v]
		switch k {
		case "b":
			s.opts.MaxOutOfOrder = d
		case "i":
			s.opts.IdleAfter = d
		case "h":
			s.opts.Hold = d
		case "cap":
			s.opts.CapBytes = n
		case "future":
			s.opts.FutureLimit = d
		case "past":
			s.opts.PastLimit = d
		case "late":
			s.opts.Late = disposal
		case "implausible":
			s.opts.Implausible = disposal
		case "order":
			if v == "source" {
				s.opts.Order = reorder.OrderSource
			}
		default:
			s.t.Fatalf("unknown option %q", k)
		}
	}
}

func (s *script) open() {
	var err error
	if s.buf, err = reorder.New[event](s.opts); err != nil {
		s.t.Fatal(err)
	}
	for _, n := range s.names {
		s.buf.Assign(n)
	}
}

func (s *script) parse(a string) event {
	name, when, _ := strings.Cut(a, ":")
	ts, j, ok := strings.Cut(when, "@")
	if !ok {
		j = ts
	}
	e := event{ts: s.time(ts), j: s.time(j)}
	e.part, e.source, _ = strings.Cut(name, "/")
	e.pos = s.next[e.part]
	s.next[e.part]++
	s.log = append(s.log, e)
	return e
}

func (s *script) push(e event) {
	err := s.buf.Push(reorder.Record[event]{
		Partition: s.buf.Assign(e.part), Source: e.source, Position: e.pos, Stamp: e.j, Time: e.ts, Payload: e,
	})
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *script) time(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		s.t.Fatal(err)
	}
	return scriptBase + n*s.unit
}

// show prints a time in units; 7+ is a microsecond above 7, 7- one below.
func (s *script) show(t int64) string {
	switch t {
	case reorder.MinTime:
		return "-inf"
	case reorder.MaxTime:
		return "+inf"
	}
	t -= scriptBase
	switch (t%s.unit + s.unit) % s.unit {
	case 0:
		return strconv.FormatInt(t/s.unit, 10)
	case 1:
		return strconv.FormatInt((t-1)/s.unit, 10) + "+"
	case s.unit - 1:
		return strconv.FormatInt((t+1)/s.unit, 10) + "-"
	}
	return fmt.Sprintf("%d us", t)
}

func (s *script) drain() {
	lines := map[reorder.Kind][]string{}
	for g := s.buf.Next(); len(g) > 0; g = s.buf.Next() {
		for i := range g {
			lines[g[i].Kind] = append(lines[g[i].Kind], s.item(&g[i]))
		}
	}
	for _, k := range []reorder.Kind{reorder.Main, reorder.Late, reorder.Quarantine} {
		if len(lines[k]) > 0 {
			s.out = append(s.out, k.String()+" "+strings.Join(lines[k], " "))
		}
	}
}

func (s *script) item(it *reorder.Item[event]) string {
	e := it.Payload
	name := e.part
	if e.source != "" {
		name += "/" + e.source + "#"
	}
	text := fmt.Sprintf("%s%d:%s", name, e.pos, s.show(e.ts))
	if it.Time != e.ts {
		text += "(t=" + s.show(it.Time) + ")"
	}
	if l := it.Lateness(); l > 0 {
		text += "(W=" + s.show(it.Watermark) + ")"
	}
	for i, f := range []reorder.Flags{reorder.Forced, reorder.Clamped, reorder.Passed} {
		if it.Flags&f != 0 {
			text += "!~^"[i : i+1]
		}
	}
	return text
}

func (s *script) checkpoint() {
	s.buf.Settle()
	s.drain()
	cp, err := s.buf.Checkpoint()
	if err != nil {
		s.t.Fatal(err)
	}
	if s.saved, err = cp.MarshalBinary(); err != nil {
		s.t.Fatal(err)
	}
	s.out = append(s.out, "W="+s.show(cp.Watermark))
	for _, p := range cp.Partitions {
		s.out = append(s.out, fmt.Sprintf("%s low=%d read=%d", p.Name, p.Low, p.Read))
	}
}

func (s *script) restart() {
	var cp reorder.Checkpoint
	if err := cp.UnmarshalBinary(s.saved); err != nil {
		s.t.Fatal(err)
	}
	names := s.names
	s.names = nil
	s.open()
	s.names = names
	if err := s.buf.Restore(cp); err != nil {
		s.t.Fatal(err)
	}
	seek := map[string]int64{}
	for _, p := range cp.Partitions {
		seek[p.Name] = p.Seek
	}
	for _, e := range s.log {
		if e.pos >= seek[e.part] {
			s.push(e)
		}
	}
}

func (s *script) metrics() {
	m := s.buf.Metrics()
	s.out = append(s.out, fmt.Sprintf("W=%s held=%d bytes=%d live=%d idle=%d holding=%q", s.show(m.Watermark), m.HeldRecords, m.HeldBytes, m.LiveSources, m.IdleSources, m.HoldingSource))
	s.out = append(s.out, fmt.Sprintf("pushed=%d released=%d late=%d dropped=%d clamped=%d quarantined=%d forced{hold}=%d forced{cap}=%d forced-records=%d reread=%d taken-back=%d inversions=%d/%d",
		m.Pushed, m.Released, m.Late, m.Dropped, m.Clamped, m.Quarantined, m.ForcedHold, m.ForcedCap, m.ForcedRecords, m.Reread, m.TakenBack, m.InversionsIn, m.InversionsOut))
	for _, src := range s.buf.Sources() {
		s.out = append(s.out, fmt.Sprintf("%s/%s M=%s idle=%v late=%d clamped=%d forced=%d", src.Partition, src.Source, s.show(src.Max), src.Idle, src.Late, src.Clamped, src.Forced))
	}
}
