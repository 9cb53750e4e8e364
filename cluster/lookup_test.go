package cluster_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/daybook-data/daybook/cluster"
	"github.com/daybook-data/daybook/cluster/metadata"
	"github.com/daybook-data/daybook/storage/storagetest"
)

// keyedRecord is a batch of one record with a key.
func keyedRecord(key, value string) []byte {
	r := append(binary.AppendVarint([]byte{0, 0, 0}, int64(len(key))), key...)
	r = append(append(binary.AppendVarint(r, int64(len(value))), value...), 0)
	b := append(storagetest.Batch("")[:61], binary.AppendVarint(nil, int64(len(r)))...)
	b = append(b, r...)
	binary.BigEndian.PutUint32(b[8:], uint32(len(b)-12))
	binary.BigEndian.PutUint32(b[17:], crc32.Checksum(b[21:], crc32.MakeTable(crc32.Castagnoli)))
	return b
}

// appendKey appends a record with a key to the partition that the key belongs to.
func appendKey(t *testing.T, n *cluster.Node, stream string, partition int32, key, value string) {
	t.Helper()
	p, err := n.Partition(stream, partition)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan cluster.Appended, 1)
	if err := p.Append(t.Context(), keyedRecord(key, value), func(a cluster.Appended) { done <- a }); err != nil {
		t.Fatal(err)
	}
	if a := <-done; a.Err != nil {
		t.Fatal(a.Err)
	}
}

func lookup(t *testing.T, n *cluster.Node, stream, key string, order cluster.Order) (values []string, err error) {
	for r, err := range n.Lookup(t.Context(), stream, []byte(key), order) {
		if err != nil {
			return values, err
		}
		values = append(values, fmt.Sprintf("%d/%d=%s", r.Partition, r.Offset, r.Value))
	}
	return values, nil
}

// A key's records are found over all partitions and journals, in the order of their append.
func TestARecordIsFoundByItsKey(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	n := openNode(t, dir)
	s := create(t, n, metadata.NewStream{Name: "orders", Partitions: 6, Journals: 3})
	for i := range 30 { // partitions of a key change when a stream grows
		appendKey(t, n, "orders", int32(i%6), fmt.Sprint("key-", i%2), fmt.Sprint("v", i))
	}
	if _, err := lookup(t, n, "orders", "key-1", cluster.OldestFirst); !errors.Is(err, cluster.ErrNoKeyIndex) {
		t.Fatalf("without an index: %v, want ErrNoKeyIndex", err)
	}
	set := cluster.ConfigChange{Set: map[string]string{metadata.SettingKeyIndex: "true"}}
	if err := n.ConfigureStream(t.Context(), s.ID, set); err != nil {
		t.Fatal(err)
	}
	var oldest, newest []string
	for i := 1; i < 30; i += 2 {
		v := fmt.Sprintf("%d/%d=v%d", i%6, i/6, i)
		oldest, newest = append(oldest, v), append([]string{v}, newest...)
	}
	check := func() {
		t.Helper()
		for order, want := range map[cluster.Order][]string{cluster.OldestFirst: oldest, cluster.NewestFirst: newest} {
			got, err := lookup(t, n, "orders", "key-1", order)
			if diff := cmp.Diff(want, got); diff != "" || err != nil {
				t.Errorf("history, newest first %v: %v (-want +got)\n%s", order, err, diff)
			}
		}
		if r, ok, err := n.Latest(t.Context(), "orders", []byte("key-1")); err != nil || !ok || string(r.Value) != "v29" {
			t.Errorf("the latest is %s, %v, %v; want v29", r.Value, ok, err)
		}
		if _, ok, err := n.Latest(t.Context(), "orders", []byte("none")); err != nil || ok {
			t.Errorf("a key that never was is found: %v, %v", ok, err)
		}
	}
	check()
	if err := n.Close(); err != nil {
		t.Fatal(err)
	}
	n = openNode(t, dir)
	check()
	if _, err := lookup(t, n, "none", "k", cluster.OldestFirst); !errors.Is(err, metadata.ErrUnknownStream) {
		t.Errorf("a stream that is not: %v, want ErrUnknownStream", err)
	}
}
