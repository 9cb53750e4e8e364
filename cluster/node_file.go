package cluster

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"maps"
	"path"
	"sync"

	"github.com/daybook-data/daybook/internal/strictjson"
	"github.com/daybook-data/daybook/internal/vfs"
)

// nodeFileName is the file in the data directory that says which node of which cluster it belongs to. It is there before
// anything else of the directory is used by a node that has a network.
const nodeFileName = "node.json"

// identity is who a node is. It is replaced as a whole, never changed.
type identity struct {
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
	// Generation counts how often the cluster went on after it had lost its majority for good: copies of before are told
	// from those that count by it.
	Generation uint64 `json:"generation,omitempty"`
	// Peers are the other nodes' addresses as known last, so that a restart finds them.
	Peers map[int32]string `json:"peers,omitempty"`
	// Replicas are the copies that were begun here, by journal: one whose files are missing was lost, and is not to be begun
	// again as if it had never been.
	Replicas map[string]uint64 `json:"replicas,omitempty"`
}

// family is the name that the node and the others show each other: of one cluster and one generation.
func (i identity) family() string {
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

// nodeFile keeps an identity durable.
type nodeFile struct {
	fs   vfs.FS
	path string

	mu  sync.Mutex // held while the file is written
	now identity   // guarded by mu
}

func sumOf(b []byte) string {
	return fmt.Sprintf("%08x", crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)))
}

// openNodeFile reads the file in dir; found is false if there is none.
func openNodeFile(fsys vfs.FS, dir string) (f *nodeFile, found bool, err error) {
	f = &nodeFile{fs: fsys, path: path.Join(dir, nodeFileName)}
	b, err := vfs.ReadFile(fsys, f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return f, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("reading %s: %w", f.path, err)
	}
	var sealed sealedIdentity
	err = strictjson.Decode(b, &sealed)
	if err == nil && sealed.CRC != sumOf(sealed.Node) {
		err = fmt.Errorf("its checksum is %s, the content has %s", sealed.CRC, sumOf(sealed.Node))
	}
	if err == nil {
		err = strictjson.Decode(sealed.Node, &f.now)
	}
	if err != nil {
		return nil, false, fmt.Errorf("%s is damaged: %w; it says which node this directory belongs to: restore it, or take the node out of the cluster and join with an empty directory", f.path, err)
	}
	return f, true, nil
}

// get returns the identity. Do not change its maps.
func (f *nodeFile) get() identity {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.now
}

// update changes the identity. When it returns nil the change is durable.
func (f *nodeFile) update(change func(*identity)) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	next := f.now
	next.Peers, next.Replicas = maps.Clone(next.Peers), maps.Clone(next.Replicas)
	change(&next)
	node, err := json.Marshal(next)
	if err != nil {
		return err
	}
	b, err := json.Marshal(sealedIdentity{CRC: sumOf(node), Node: node})
	if err != nil {
		return err
	}
	if err := vfs.WriteFile(f.fs, f.path, append(b, '\n'), 0o644); err != nil {
		return fmt.Errorf("writing %s: %w", f.path, err)
	}
	f.now = next
	return nil
}

// newToken names a directory.
func newToken() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // documented never to fail
	return hex.EncodeToString(b[:])
}
