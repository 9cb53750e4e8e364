package datadir

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"reflect"
	"sync"

	"github.com/daybook-data/daybook/internal/strictjson"
	"github.com/daybook-data/daybook/internal/vfs"
)

// Identity is who a node is. It is replaced as a whole, never changed.
type Identity struct {
	Cluster string `json:"cluster_id,omitempty"`
	Node    int32  `json:"node_id,omitempty"`
	// Token is the directory's random name, under which it asks for an id.
	Token string `json:"token"`
	// Starts counts the starts of the node: what it proposed before the last one is told from what it proposes now.
	Starts uint64 `json:"starts"`
	// Founding says that the cluster's metadata may not be there yet, and is this node's to make.
	Founding bool `json:"founding,omitempty"`
	// Observes says that the directory is an observer's, which must never be written to as a node's.
	Observes bool `json:"observes,omitempty"`
	// Settled says that the metadata was complete here once: if it is missing later it was lost.
	Settled bool `json:"settled,omitempty"`
	// Removed says that the node was taken out of its cluster, and how it learnt that.
	Removed string `json:"removed,omitempty"`
	// SetBack says that the directory is an older state of the node's than what took part since, and how that was learnt.
	SetBack string `json:"set_back,omitempty"`
	// Generation counts how often the cluster went on after it had lost its majority for good: copies of before are told
	// from those that count by it.
	Generation uint64 `json:"generation,omitempty"`
	// Peers are the other nodes' addresses as known last, so that a restart finds them.
	Peers map[int32]string `json:"peers,omitempty"`
	// Replicas are the copies that were begun here, by journal: one whose files are missing was lost, and is not to be begun
	// again as if it had never been.
	Replicas map[string]uint64 `json:"replicas,omitempty"`
}

// Family is the name that the node and the others show each other: of one cluster and one generation.
func (i Identity) Family() string {
	if i.Generation == 0 {
		return i.Cluster
	}
	return fmt.Sprintf("%s#%d", i.Cluster, i.Generation)
}

// sealedIdentity is the file: the identity and the CRC-32C of its bytes.
type sealedIdentity struct {
	CRC  string          `json:"crc32c"`
	Node json.RawMessage `json:"node"`
}

// File keeps an identity durable. It is safe for concurrent use.
type File struct {
	fs   vfs.FS
	path string

	mu    sync.Mutex // held while the file is written; guards all below
	now   Identity
	there bool // the file exists
}

// OpenFile reads the file in dir; found is false if there is none, and the first Update makes it.
func OpenFile(fsys vfs.FS, dir string) (f *File, found bool, err error) {
	f = &File{fs: fsys, path: path.Join(dir, FileName)}
	b, err := vfs.ReadFile(fsys, f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return f, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("reading %s: %w", f.path, err)
	}
	var sealed sealedIdentity
	err = strictjson.Decode(b, &sealed)
	if err == nil && sealed.CRC != strictjson.Checksum(sealed.Node) {
		err = fmt.Errorf("its checksum is %s, the content has %s", sealed.CRC, strictjson.Checksum(sealed.Node))
	}
	if err == nil {
		err = strictjson.Decode(sealed.Node, &f.now)
	}
	if err != nil {
		return nil, false, fmt.Errorf("%s is damaged: %w; it says which node this directory belongs to: restore it, or take the node out of the cluster and join with an empty directory", f.path, err)
	}
	f.there = true
	return f, true, nil
}

// Get returns the identity. Do not change its maps.
func (f *File) Get() Identity {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.now
}

// Update changes the identity. When it returns nil the change is durable. Nothing is written where nothing changes: on a
// full disk that would fail.
func (f *File) Update(change func(*Identity)) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	next := f.now
	next.Peers, next.Replicas = maps.Clone(next.Peers), maps.Clone(next.Replicas)
	change(&next)
	if f.there && reflect.DeepEqual(next, f.now) {
		return nil
	}
	node, err := json.Marshal(next)
	if err != nil {
		return err
	}
	b, err := json.Marshal(sealedIdentity{CRC: strictjson.Checksum(node), Node: node})
	if err != nil {
		return err
	}
	if err := vfs.WriteFile(f.fs, f.path, append(b, '\n'), 0o644); err != nil {
		return fmt.Errorf("writing %s: %w", f.path, err)
	}
	f.now, f.there = next, true
	return nil
}

// NewToken names a directory.
func NewToken() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // documented never to fail
	return hex.EncodeToString(b[:])
}
