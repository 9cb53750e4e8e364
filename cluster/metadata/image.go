package metadata

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"slices"
	"strings"
)

// imageMagic begins a metadata snapshot: "DBMETA" and the version of the form.
// After it come the CRC-32C of the rest (4 bytes, big endian) and JSON.
const imageMagic = "DBMETA1\n"

// image is the whole metadata state as it stands in a snapshot. Lists are
// sorted, so that equal states have equal bytes.
type image struct {
	ClusterID      string            `json:"cluster_id"`
	Streams        []*Stream         `json:"streams"`
	Groups         []groupImage      `json:"groups"`
	Kept           map[string][]byte `json:"kept_groups,omitempty"`
	Transactions   []*Transaction    `json:"transactions"`
	Users          []*User           `json:"users,omitempty"`
	ACLs           []ACL             `json:"acls,omitempty"`
	NextProducerID int64             `json:"next_producer_id"`

	// Secret is Node.DecoySecret's.
	Secret     string          `json:"secret,omitempty"`
	Members    []*memberState  `json:"members,omitempty"`
	LastMember int32           `json:"last_member,omitempty"`
	Origins    []answeredImage `json:"origins,omitempty"`
	Applied    uint64          `json:"applied,omitempty"`
	Mirrored   uint64          `json:"mirrored,omitempty"`
}

// image collects the state. The caller holds mu.
func (m *State) image() image {
	image := image{ClusterID: m.clusterID, NextProducerID: m.nextProducerID, Users: m.sortedUsers(), ACLs: m.sortedACLs()}
	image.Secret = m.secret
	image.Members, image.LastMember, image.Origins, image.Applied = m.sortedMembers(), m.lastMember, m.originImages(), m.applied
	image.Mirrored = m.mirrored
	image.Streams = slices.SortedFunc(maps.Values(m.byID), func(a, b *Stream) int {
		return strings.Compare(a.ID.String(), b.ID.String())
	})
	for _, name := range slices.Sorted(maps.Keys(m.groups)) {
		image.Groups = append(image.Groups, m.groups[name].image(name))
	}
	image.Kept = m.kept
	for _, id := range slices.Sorted(maps.Keys(m.transactions)) {
		image.Transactions = append(image.Transactions, m.transactions[id])
	}
	return image
}

// load replaces the state. The caller holds mu.
func (m *State) load(image image) {
	m.streams = map[string]*Stream{}
	m.byID = map[StreamID]*Stream{}
	for _, s := range image.Streams {
		m.byID[s.ID] = s
		if !s.Deleting {
			m.streams[s.Name] = s
		}
	}
	m.groups = map[string]*groupOffsets{}
	for _, g := range image.Groups {
		m.groups[g.Name] = g.state()
	}
	m.kept = map[string][]byte{}
	maps.Copy(m.kept, image.Kept)
	m.transactions = map[string]*Transaction{}
	for _, t := range image.Transactions {
		m.transactions[t.ID] = t
	}
	m.users = map[string]*User{}
	for _, u := range image.Users {
		m.users[u.Name] = u
	}
	m.acls = map[ACL]struct{}{}
	for _, a := range image.ACLs {
		m.acls[a] = struct{}{}
	}
	m.members, m.lastMember, m.applied = map[int32]*memberState{}, image.LastMember, image.Applied
	m.mirrored = image.Mirrored
	for _, s := range image.Members {
		m.members[s.ID] = s
	}
	m.origins = map[int32]answered{}
	for _, a := range image.Origins {
		results := make([]Result, len(a.Results))
		for i, w := range a.Results {
			results[i] = w.Result()
		}
		m.origins[a.Origin.Node] = answered{a.Origin, results}
	}
	m.aclRevision++
	m.secret = image.Secret
	m.nextProducerID, m.clusterID = image.NextProducerID, image.ClusterID
}

var errImageDamaged = errors.New("metadata snapshot is damaged")

func sealImage(data []byte) []byte {
	sealed := make([]byte, 0, len(imageMagic)+4+len(data))
	sealed = append(sealed, imageMagic...)
	sealed = binary.BigEndian.AppendUint32(sealed, crc32.Checksum(data, crc32.MakeTable(crc32.Castagnoli)))
	return append(sealed, data...)
}

// openImage checks what sealImage made and returns its content. A snapshot that
// does not check is an error, never an empty state (an empty state would make
// every stream on disk look like an orphan).
func openImage(sealed []byte) ([]byte, error) {
	head := len(imageMagic) + 4
	if len(sealed) < head || string(sealed[:len(imageMagic)]) != imageMagic {
		return nil, fmt.Errorf("%w: no header", errImageDamaged)
	}
	data := sealed[head:]
	want := binary.BigEndian.Uint32(sealed[len(imageMagic):])
	if got := crc32.Checksum(data, crc32.MakeTable(crc32.Castagnoli)); got != want {
		return nil, fmt.Errorf("%w: checksum %08x, header says %08x", errImageDamaged, got, want)
	}
	return data, nil
}
