package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/daybook-data/daybook/cluster/datadir"
	"github.com/daybook-data/daybook/cluster/metadata"
	"github.com/daybook-data/daybook/internal/vfs"
	"github.com/daybook-data/daybook/storage"
)

// journalInfo is a journal as `daybook journal ls` shows it.
type journalInfo struct {
	Dir        string                `json:"dir"`
	Stream     string                `json:"stream,omitempty"` // empty: it is the metadata's, or nobody's
	Front      uint64                `json:"front"`
	End        uint64                `json:"end"`
	Durable    uint64                `json:"durable"`
	Segments   []storage.SegmentInfo `json:"segments"`
	Partitions []partitionInfo       `json:"partitions"`
	Problems   []string              `json:"problems,omitempty"`
}

type partitionInfo struct {
	Partition uint32          `json:"partition"`
	First     int64           `json:"first"`
	Next      int64           `json:"next"`
	Batches   int             `json:"batches"`
	Holds     []metadata.Hold `json:"holds,omitempty"`
}

// ListJournals prints what the journals below dir hold, from their files alone.
func ListJournals(ctx context.Context, dir string, asJSON bool, out io.Writer) error {
	paths, err := journalPaths(dir)
	if err != nil {
		return err
	}
	meta, err := peekMeta(dir)
	if err != nil {
		return err
	}
	var all []journalInfo
	for _, p := range paths {
		if err := ctx.Err(); err != nil {
			return err
		}
		info, err := inspect(p, dir, meta)
		if err != nil {
			return fmt.Errorf("looking at %s: %w", p, err)
		}
		all = append(all, info)
	}
	if asJSON {
		return json.NewEncoder(out).Encode(all)
	}
	for i := range all {
		if err := all[i].print(out); err != nil {
			return err
		}
	}
	return nil
}

// peekMeta returns the metadata of a data directory; nil if dir is not one but a single journal.
func peekMeta(dir string) (*metadata.State, error) {
	m, err := datadir.PeekMeta(vfs.OS{}, dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return m, err
}

func inspect(path, dir string, meta *metadata.State) (info journalInfo, err error) {
	p, err := storage.OpenPeek(vfs.OS{}, path)
	if err != nil {
		return info, err
	}
	info = journalInfo{Dir: path, Front: p.Front, End: p.Front, Durable: p.Durable}
	if info.Segments, err = p.Segments(); err != nil {
		return info, err
	}
	partitions := map[uint32]partitionInfo{}
	for _, s := range info.Segments {
		info.End = max(info.End, s.To)
		for _, problem := range s.Problems {
			info.Problems = append(info.Problems, problem.Error())
		}
		for id, r := range s.Partitions {
			of, known := partitions[id]
			if !known {
				of = partitionInfo{Partition: id, First: r.First}
			}
			of.First = max(min(of.First, r.First), p.Starts[id])
			of.Next, of.Batches = max(of.Next, r.Next), of.Batches+r.Batches
			partitions[id] = of
		}
	}
	stream := streamOf(path, dir, meta)
	if stream != nil {
		info.Stream = stream.Name
		for _, h := range meta.Holds(stream.ID) {
			if of, here := partitions[uint32(h.Partition)]; here {
				of.Holds = append(of.Holds, h)
				partitions[uint32(h.Partition)] = of
			}
		}
	}
	for _, id := range slices.Sorted(maps.Keys(partitions)) {
		info.Partitions = append(info.Partitions, partitions[id])
	}
	return info, nil
}

// streamOf finds the stream that a journal belongs to.
func streamOf(path, dir string, meta *metadata.State) *metadata.Stream {
	if meta == nil {
		return nil
	}
	for _, s := range meta.Streams() {
		if slices.Contains(datadir.JournalDirs(dir, s), path) {
			return s
		}
	}
	return nil
}

func (j *journalInfo) print(out io.Writer) error {
	name := "of stream " + j.Stream
	if j.Stream == "" {
		name = "of no stream"
		if filepath.Base(j.Dir) == "meta" {
			name = "of the metadata"
		}
	}
	fmt.Fprintf(out, "journal %s, %s: positions %d to %d, on stable storage to %d\n", j.Dir, name, j.Front, j.End, j.Durable)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "  SEGMENT\tTO\tFILE BYTES\tFRAMES\tBATCHES\tRECORDS\tFROM\tUNTIL\tINDEXES")
	for _, s := range j.Segments {
		fmt.Fprintf(w, "  %s\t%d\t%d\t%d\t%d\t%d\t%s\t%s\t%s\n", s.File, s.To, s.Bytes, s.Frames, s.Batches, s.Records, instant(s.First), instant(s.Last), orNone(s.Indexes))
	}
	_ = w.Flush() // the last write to out tells; what follows has columns of its own
	if len(j.Partitions) > 0 {
		fmt.Fprintln(w, "  PARTITION\tFIRST\tNEXT\tRECORDS\tBATCHES\tHELD BY")
		for _, p := range j.Partitions {
			var held []string
			for _, h := range p.Holds {
				held = append(held, fmt.Sprintf("%s at %d", h.Group, h.Offset))
			}
			fmt.Fprintf(w, "  %d\t%d\t%d\t%d\t%d\t%s\n", p.Partition, p.First, p.Next, p.Next-p.First, p.Batches, orNone(held))
		}
	}
	for _, p := range j.Problems {
		fmt.Fprintf(w, "  damaged: %s\n", p)
	}
	return w.Flush()
}

func instant(t time.Time) string {
	if t.UnixMicro() <= 0 {
		return "-"
	}
	return t.UTC().Format("2006-01-02T15:04:05.000Z")
}

func orNone(s []string) string {
	if len(s) == 0 {
		return "-"
	}
	text := s[0]
	for _, more := range s[1:] {
		text += ", " + more
	}
	return text
}

// ReadJournalOptions are those of `daybook journal read`.
type ReadJournalOptions struct {
	Dir       string
	Stream    string // name or id
	Partition int32
	From      int64
	Limit     int
	// SkipDamage goes on behind damage, and says in Log what is left out.
	SkipDamage bool
	Out        io.Writer
	Log        *slog.Logger
}

// ReadJournal prints a partition's records from the files alone.
func ReadJournal(ctx context.Context, o ReadJournalOptions) error {
	if _, err := os.Stat(o.Dir); err != nil {
		return fmt.Errorf("%w: %w", ErrEnvironment, err)
	}
	stream, err := o.stream()
	if err != nil {
		return err
	}
	p, err := storage.OpenPeek(vfs.OS{}, datadir.JournalDirs(o.Dir, stream)[o.Partition%stream.Journals])
	if errors.Is(err, fs.ErrNotExist) {
		return nil // nothing was ever written to it
	}
	if err != nil {
		return err
	}
	printed := 0
	gap := func(g *storage.GapError) error {
		if !o.SkipDamage {
			return fmt.Errorf("stream %s: %w (--skip-damage goes on behind it)", stream.Name, g)
		}
		o.Log.Warn("damage is skipped", "stream", stream.Name, "problem", g)
		return nil
	}
	err = p.Records(uint32(o.Partition), o.From, func(r storage.Record) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := printStored(o.Out, stream.Name, r); err != nil {
			return err
		}
		if printed++; printed == o.Limit {
			return errEnough
		}
		return nil
	}, gap)
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

// stream finds the stream in the folder's metadata, by its name or id.
func (o ReadJournalOptions) stream() (*metadata.Stream, error) {
	meta, err := peekMeta(o.Dir)
	if err != nil {
		return nil, err
	}
	if meta == nil {
		return nil, fmt.Errorf("%w: %s is no data folder: there is no metadata in it that knows streams", ErrEnvironment, o.Dir)
	}
	stream, ok := meta.Stream(o.Stream)
	if id, err := metadata.ParseStreamID(o.Stream); !ok && err == nil {
		stream, ok = meta.StreamByID(id)
	}
	switch {
	case !ok:
		return nil, fmt.Errorf("%w: no stream %q in %s", ErrConfig, o.Stream, o.Dir)
	case o.Partition < 0 || o.Partition >= stream.Partitions:
		return nil, fmt.Errorf("%w: stream %s has partitions 0 to %d", ErrConfig, stream.Name, stream.Partitions-1)
	}
	return stream, nil
}

// printStored prints a record as a line of JSON, with all its headers.
func printStored(out io.Writer, stream string, r storage.Record) error {
	s := shown{
		Stream: stream, Partition: int32(r.Partition), Offset: r.Offset, Time: time.UnixMilli(r.Timestamp).UTC(),
		Stamp: time.UnixMicro(r.Stamp).UTC(), Key: content(r.Key), Value: content(r.Value),
	}
	for _, h := range r.Headers {
		if s.Headers == nil {
			s.Headers = map[string]string{}
		}
		s.Headers[h.Key] = string(h.Value)
	}
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	return enc.Encode(s)
}
