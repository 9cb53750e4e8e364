package file

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"github.com/daybook-data/daybook/internal/vfs"
	"github.com/daybook-data/daybook/pipeline"
)

// manifestVersion is the version of the manifest's form. The first line of the file is
//
//	daybook-files VERSION CRC
//
// with the CRC-32C of all that follows, eight hexadecimal digits; the rest is JSON.
const (
	manifestVersion = 1
	manifestMagic   = "daybook-files"
)

// A manifest is the state of the destination. One is enough: it names the files of the last flush only, because
// before the next flush they are in place.
type manifest struct {
	Pipeline string            `json:"pipeline"`
	Sink     string            `json:"sink"`
	Epoch    uint16            `json:"epoch"`
	Streams  map[string]string `json:"streams"` // name -> id
	// Number counts the flushes that had files.
	Number  uint64   `json:"number"`
	Stamp   int64    `json:"stamp"` // the append stamp at the flush
	Offsets []offset `json:"offsets"`
	Reorder []byte   `json:"reorder,omitempty"`
	Files   []entry  `json:"files"`
}

type offset struct {
	Stream    string `json:"stream"`
	Partition int32  `json:"partition"`
	Next      int64  `json:"next"`
	// LeaderEpoch is that of the record before, if it is known.
	LeaderEpoch *int32 `json:"leader_epoch,omitempty"`
}

// An entry is a file of the flush.
type entry struct {
	Part    string `json:"part"`
	Path    string `json:"path"` // below the root
	Size    int64  `json:"size"`
	CRC     uint32 `json:"crc32c"`
	Records int64  `json:"records"`
}

func (m *manifest) checkpoint() pipeline.Checkpoint {
	c := pipeline.Checkpoint{Offsets: map[pipeline.Partition]int64{}, Reorder: m.Reorder}
	for _, o := range m.Offsets {
		p := pipeline.Partition{Stream: o.Stream, Number: o.Partition}
		c.Offsets[p] = o.Next
		if o.LeaderEpoch != nil {
			if c.Epochs == nil {
				c.Epochs = map[pipeline.Partition]int32{}
			}
			c.Epochs[p] = *o.LeaderEpoch
		}
	}
	return c
}

// move sets the cursor. Partitions that c does not know (of a stream the sink no longer reads) keep theirs.
func (m *manifest) move(c pipeline.Checkpoint) {
	m.Offsets = slices.DeleteFunc(m.Offsets, func(o offset) bool {
		_, moves := c.Offsets[pipeline.Partition{Stream: o.Stream, Number: o.Partition}]
		return moves
	})
	for p, next := range c.Offsets {
		o := offset{Stream: p.Stream, Partition: p.Number, Next: next}
		if epoch, ok := c.Epochs[p]; ok {
			o.LeaderEpoch = &epoch
		}
		m.Offsets = append(m.Offsets, o)
	}
	slices.SortFunc(m.Offsets, func(a, b offset) int {
		return cmp.Or(cmp.Compare(a.Stream, b.Stream), cmp.Compare(a.Partition, b.Partition))
	})
	m.Reorder = c.Reorder
}

func (m *manifest) encode() ([]byte, error) {
	body, err := json.MarshalIndent(m, "", " ")
	if err != nil {
		return nil, err
	}
	body = append(body, '\n')
	head := fmt.Appendf(nil, "%s %d %08x\n", manifestMagic, manifestVersion, crc32.Checksum(body, castagnoli))
	return append(head, body...), nil
}

// readManifest returns nil where there is none.
func readManifest(fsys vfs.FS, name string) (*manifest, error) {
	data, err := vfs.ReadFile(fsys, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the manifest: %w", err)
	}
	m, err := decodeManifest(data)
	if err != nil {
		return nil, &pipeline.StopError{
			Code: "manifest-damaged", Where: name, Err: err,
			Fix: "put back a copy of the manifest; without one, let the sink write into another path and replay",
		}
	}
	return m, nil
}

func decodeManifest(data []byte) (*manifest, error) {
	head, body, ok := bytes.Cut(data, []byte("\n"))
	words := strings.Fields(string(head))
	if !ok || len(words) != 3 || words[0] != manifestMagic {
		return nil, errors.New("it is no manifest of a file sink")
	}
	if words[1] != strconv.Itoa(manifestVersion) {
		return nil, fmt.Errorf("it has version %s, this program reads version %d", words[1], manifestVersion)
	}
	if sum := fmt.Sprintf("%08x", crc32.Checksum(body, castagnoli)); sum != words[2] {
		return nil, fmt.Errorf("its checksum is %s, the contents have %s", words[2], sum)
	}
	m := new(manifest)
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(m); err != nil {
		return nil, err
	}
	return m, nil
}

// newManifest is that of a target where nothing was written yet.
func newManifest(env pipeline.SinkEnv) *manifest {
	m := &manifest{Pipeline: env.Pipeline, Sink: env.Name, Epoch: env.Epoch}
	m.addStreams(env)
	return m
}

func (m *manifest) addStreams(env pipeline.SinkEnv) {
	if m.Streams == nil {
		m.Streams = map[string]string{}
	}
	for _, s := range env.Streams {
		m.Streams[s.Name] = s.ID
	}
}

// check compares the manifest with the run that found it.
func (m *manifest) check(env pipeline.SinkEnv) error {
	if m.Epoch != env.Epoch {
		return fmt.Errorf("it is of epoch %d, this run of epoch %d", m.Epoch, env.Epoch)
	}
	shared := len(m.Streams) == 0
	for _, s := range env.Streams {
		id, ok := m.Streams[s.Name]
		if ok && id != s.ID {
			return fmt.Errorf("it was filled from another stream %s (id %s, now %s)", s.Name, id, s.ID)
		}
		shared = shared || ok
	}
	if !shared {
		return fmt.Errorf("it is filled by sink %s of pipeline %s from other streams", m.Sink, m.Pipeline)
	}
	return nil
}
