package kafka_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

func offsetsOf(topic string, partition int32, at int64) kadm.Offsets {
	var o kadm.Offsets
	o.AddOffset(topic, partition, at, -1)
	return o
}

// The first record whose time is at or after the one asked for, also in
// the middle of a compressed batch.
func TestOffsetsByTimeAreExact(t *testing.T) {
	bothWays(t, func(t *testing.T, b *broker) {
		records := numbered("t", 4)
		for i, r := range records {
			r.Timestamp = epoch(int64(2 + 2*i)) // 2 4 6 8
		}
		produce(t, b.client(kgo.ProducerBatchCompression(kgo.Lz4Compression())), records...)
		for ms, want := range map[int64]kadm.ListedOffset{
			0: {Offset: 0, Timestamp: 2}, 2: {Offset: 0, Timestamp: 2}, 3: {Offset: 1, Timestamp: 4},
			4: {Offset: 1, Timestamp: 4}, 5: {Offset: 2, Timestamp: 6}, 8: {Offset: 3, Timestamp: 8},
		} {
			listed, err := b.admin().ListOffsetsAfterMilli(t.Context(), ms, "t")
			if err != nil {
				t.Fatal(err)
			}
			if got, _ := listed.Lookup("t", 0); got.Offset != want.Offset || got.Timestamp != want.Timestamp {
				t.Errorf("time %d gave offset %d of time %d, want %d of %d", ms, got.Offset, got.Timestamp, want.Offset, want.Timestamp)
			}
		}
		listed, err := b.admin().ListMaxTimestampOffsets(t.Context(), "t")
		if err != nil {
			t.Fatal(err)
		}
		if got, _ := listed.Lookup("t", 0); got.Offset != 3 || got.Timestamp != 8 {
			t.Errorf("latest time is at %d/%d, want 3/8", got.Offset, got.Timestamp)
		}
	})
}

func TestCommittedOffsetsAndTheirMetadataComeBack(t *testing.T) {
	bothWays(t, func(t *testing.T, b *broker) {
		b.topic("t", 2, nil)
		longest := strings.Repeat("é", 2048) // 4,096 bytes
		var offsets kadm.Offsets
		offsets.Add(kadm.Offset{Topic: "t", Partition: 0, At: 7, LeaderEpoch: 3, Metadata: longest})
		offsets.Add(kadm.Offset{Topic: "t", Partition: 1, At: 1 << 40, LeaderEpoch: -1})
		if err := b.admin().CommitAllOffsets(t.Context(), "g", offsets); err != nil {
			t.Fatal(err)
		}
		check := func() {
			t.Helper()
			got, err := b.admin().FetchOffsets(t.Context(), "g")
			if err != nil {
				t.Fatal(err)
			}
			first, _ := got.Lookup("t", 0)
			if first.At != 7 || first.LeaderEpoch != 3 || first.Metadata != longest {
				t.Errorf("partition 0 came back as offset %d, epoch %d and %d bytes", first.At, first.LeaderEpoch, len(first.Metadata))
			}
			if second, _ := got.Lookup("t", 1); second.At != 1<<40 || second.Metadata != "" {
				t.Errorf("partition 1 came back as %+v", second)
			}
		}
		check()
		b.restart()
		check()

		var tooLong kadm.Offsets
		tooLong.Add(kadm.Offset{Topic: "t", Partition: 0, At: 8, Metadata: longest + "x"})
		committed, err := b.admin().CommitOffsets(t.Context(), "g", tooLong)
		if err != nil {
			t.Fatal(err)
		}
		if r, _ := committed.Lookup("t", 0); !errors.Is(r.Err, kerr.OffsetMetadataTooLarge) {
			t.Errorf("4,097 bytes of metadata: %v, want OFFSET_METADATA_TOO_LARGE", r.Err)
		}
		check()
	})
}

func TestSimpleCommitIsRefusedWhileTheGroupHasMembers(t *testing.T) {
	bothWays(t, func(t *testing.T, b *broker) {
		produce(t, b.client(), numbered("t", 1)...)
		c := b.client(kgo.ConsumeTopics("t"), kgo.ConsumerGroup("g"))
		consume(t, c, 1)
		committed, err := b.admin().CommitOffsets(t.Context(), "g", offsetsOf("t", 0, 1))
		if err != nil {
			t.Fatal(err)
		}
		if r, _ := committed.Lookup("t", 0); !errors.Is(r.Err, kerr.UnknownMemberID) {
			t.Errorf("got %v, want UNKNOWN_MEMBER_ID", r.Err)
		}
		c.Close()
		eventually(t, "committing after the member left", func() error {
			return b.admin().CommitAllOffsets(t.Context(), "g", offsetsOf("t", 0, 1))
		})
	})
}

func TestGroupsAreListedDescribedAndDeleted(t *testing.T) {
	bothWays(t, func(t *testing.T, b *broker) {
		adm := b.admin()
		produce(t, b.client(), numbered("t", 1)...)
		if err := adm.CommitAllOffsets(t.Context(), "simple", offsetsOf("t", 0, 1)); err != nil {
			t.Fatal(err)
		}
		c := b.client(kgo.ConsumeTopics("t"), kgo.ConsumerGroup("busy"), kgo.ClientID("me"))
		consume(t, c, 1)
		described, err := adm.DescribeGroups(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if g := described["busy"]; g.State != "Stable" || len(g.Members) != 1 || g.Members[0].ClientID != "me" || g.ProtocolType != "consumer" {
			t.Errorf("busy is %+v", g)
		}
		if g := described["simple"]; g.State != "Empty" {
			t.Errorf("simple is %+v", g)
		}
		deleted, err := adm.DeleteGroups(t.Context(), "busy", "simple", "nobody")
		if err != nil {
			t.Fatal(err)
		}
		for group, want := range map[string]error{"busy": kerr.NonEmptyGroup, "simple": nil, "nobody": kerr.GroupIDNotFound} {
			if err := deleted[group].Err; !errors.Is(err, want) {
				t.Errorf("deleting %s: %v, want %v", group, err, want)
			}
		}
		if got, err := adm.FetchOffsets(t.Context(), "simple"); err != nil || len(got) != 0 {
			t.Errorf("deleted group still has %v, %v", got, err)
		}
	})
}

func TestDeletedOffsetsAreGone(t *testing.T) {
	bothWays(t, func(t *testing.T, b *broker) {
		b.topic("t", 2, nil)
		offsets := offsetsOf("t", 0, 1)
		offsets.AddOffset("t", 1, 2, -1)
		if err := b.admin().CommitAllOffsets(t.Context(), "g", offsets); err != nil {
			t.Fatal(err)
		}
		var gone kadm.TopicsSet
		gone.Add("t", 0)
		if _, err := b.admin().DeleteOffsets(t.Context(), "g", gone); err != nil {
			t.Fatal(err)
		}
		got, err := b.admin().FetchOffsets(t.Context(), "g")
		if err != nil {
			t.Fatal(err)
		}
		_, first := got.Lookup("t", 0)
		if second, ok := got.Lookup("t", 1); first || !ok || second.At != 2 {
			t.Errorf("left are %v, want partition 1 alone", got)
		}
	})
}
