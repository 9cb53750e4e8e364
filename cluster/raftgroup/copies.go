package raftgroup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/hashicorp/raft"

	"github.com/daybook-data/daybook/internal/strictjson"
	"github.com/daybook-data/daybook/internal/vfs"
	"github.com/daybook-data/daybook/storage"
)

// Copies is how a copy of a journal reaches the others, to compare itself with them and to be mended by them. It is safe
// for concurrent use.
type Copies interface {
	// Nodes are those that have another copy.
	Nodes() []string
	// Ask gives a question to the copy on a node, whose Group answers it.
	Ask(ctx context.Context, node string, question []byte) (answer []byte, err error)
}

// stretchBytes is how much of the log is fetched at a time.
const stretchBytes = 1 << 20

// copyQuestion is what one copy asks another.
type copyQuestion struct {
	Links    []uint64 `json:"links,omitempty"`    // the chain of checksums behind these raft entries
	Position uint64   `json:"position,omitempty"` // the bytes of the log from here on
	Bytes    int      `json:"bytes,omitempty"`
	Suspect  bool     `json:"suspect,omitempty"` // what is there did not fit: it should look at its own
	Refused  []uint64 `json:"refused,omitempty"` // the frames of these entries came damaged, some of them
	Front    bool     `json:"front,omitempty"`   // where its log begins
}

// copyAnswer is what the other one says.
type copyAnswer struct {
	Links     []answeredLink `json:"links,omitempty"` // of the entries that are committed there, or gone
	Data      []byte         `json:"data,omitempty"`
	Committed bool           `json:"committed,omitempty"` // all of Data is
	Damaged   string         `json:"damaged,omitempty"`   // which of the refused frames is damaged there
	Front     uint64         `json:"front,omitempty"`     // a position; only where that was asked, as older builds do not know it
}

// answeredLink is a link, or says that retention has removed the entry.
type answeredLink struct {
	storage.Link
	Gone bool `json:"gone,omitempty"`
}

// Answer answers a question of another copy of the journal.
func (g *Group) Answer(question []byte) ([]byte, error) {
	var q copyQuestion
	if err := strictjson.Decode(question, &q); err != nil {
		return nil, err
	}
	a := copyAnswer{}
	var err error
	switch {
	case len(q.Links) > 0:
		a.Links, err = g.links(q.Links)
	case len(q.Refused) > 0:
		a.Damaged, err = g.refusedFrames(q.Refused)
	case q.Front:
		a.Front = g.journal.Front().Position
	case q.Suspect:
		g.care.suspect(q.Position)
	case q.Bytes > 0 && q.Bytes <= stretchBytes:
		a.Data = make([]byte, q.Bytes)
		a.Committed, err = g.journal.Stretch(q.Position, a.Data)
	default:
		err = fmt.Errorf("question of another copy asks for nothing that this build knows, or for %d bytes", q.Bytes)
	}
	if err != nil {
		return nil, err
	}
	return json.Marshal(a)
}

func (g *Group) links(entries []uint64) (all []answeredLink, err error) {
	front := g.journal.Front().Index
	for _, i := range entries {
		if i <= front {
			all = append(all, answeredLink{Link: storage.Link{Index: i}, Gone: true})
			continue
		}
		switch l, err := g.journal.LinkAt(i); {
		case err == nil:
			all = append(all, answeredLink{Link: l})
		case errors.Is(err, raft.ErrLogNotFound): // not yet
		default:
			return all, err
		}
	}
	return all, nil
}

// refusedFrames looks whether frames that came damaged elsewhere are damaged here.
func (g *Group) refusedFrames(entries []uint64) (damaged string, err error) {
	for _, i := range entries {
		var d *storage.DamageError
		switch _, err := g.journal.Frame(i); {
		case errors.As(err, &d): // the journal has told the caretaker
			return d.Error(), nil
		case err != nil && !errors.Is(err, raft.ErrLogNotFound):
			return "", err
		}
	}
	return "", nil
}

// ask asks the copy on a node.
func ask(ctx context.Context, c Copies, node string, q copyQuestion) (a copyAnswer, err error) {
	body, err := json.Marshal(q)
	if err != nil {
		return a, err
	}
	answered, err := c.Ask(ctx, node, body)
	if err != nil {
		return a, err
	}
	return a, strictjson.Decode(answered, &a)
}

// fetch gets bytes of the log from the copy on a node, and says whether they are committed there.
func fetch(ctx context.Context, c Copies, node string, position uint64, buf []byte) (committed bool, err error) {
	committed = true
	for len(buf) > 0 {
		n := min(len(buf), stretchBytes)
		a, err := ask(ctx, c, node, copyQuestion{Position: position, Bytes: n})
		if err != nil {
			return false, err
		}
		if len(a.Data) != n {
			return false, fmt.Errorf("node %s answers with %d bytes of %d", node, len(a.Data), n)
		}
		copy(buf, a.Data)
		position, buf, committed = position+uint64(n), buf[n:], committed && a.Committed
	}
	return committed, nil
}

// MendClosed mends a journal that does not open because of d from another copy. If no copy can the error is that of the
// last one, or storage.ErrCannotMend: then another copy has to take this one's place.
func MendClosed(ctx context.Context, fsys vfs.FS, dir string, d *storage.DamageError, c Copies) (from string, err error) {
	err = errors.New("no other copy can be reached")
	nodes := c.Nodes()
	for _, node := range nodes {
		err = storage.MendClosed(fsys, dir, d, func(position uint64, buf []byte) (bool, error) {
			return fetch(ctx, c, node, position, buf)
		})
		if err == nil {
			return node, nil
		}
		if errors.Is(err, storage.ErrCannotMend) || ctx.Err() != nil {
			return "", err
		}
	}
	for _, node := range nodes {
		if a, asked := ask(ctx, c, node, copyQuestion{Front: true}); asked == nil && a.Front > d.Position {
			return "", fmt.Errorf("%w: retention has removed what is damaged on node %s: %w", storage.ErrCannotMend, node, err)
		}
	}
	if node := otherHistory(ctx, fsys, dir, d, c); node != "" {
		return "", fmt.Errorf("%w: node %s has committed other entries in place of what is damaged: %w", storage.ErrCannotMend, node, err)
	}
	return "", err
}

// otherHistory is a node that has committed another entry where the damaged segment of a journal that does not open begins or
// ends, if there is one: then this log was never committed there.
func otherHistory(ctx context.Context, fsys vfs.FS, dir string, d *storage.DamageError, c Copies) (node string) {
	links, err := storage.ClosedLinks(fsys, dir, d)
	if err != nil {
		return ""
	}
	for _, own := range links {
		if node := whoDiffers(ctx, c, own); node != "" {
			return node
		}
	}
	return ""
}

// whoDiffers is a node whose committed log has another link than this one, if none has the same.
func whoDiffers(ctx context.Context, c Copies, own storage.Link) (node string) {
	for _, other := range c.Nodes() {
		a, err := ask(ctx, c, other, copyQuestion{Links: []uint64{own.Index}})
		switch {
		case err != nil || len(a.Links) != 1 || a.Links[0].Gone: // nothing is known of it there
		case a.Links[0].Link == own:
			return ""
		default:
			node = other
		}
	}
	return node
}
