package kafka_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/daybook-data/daybook/cluster/kafka"
)

// Every node names the same coordinator, the others refuse, and what was committed is
// there under the next one.
func TestOneNodeCoordinates(t *testing.T) {
	ps := newPeers(t, 3)
	c := ps.client()
	adm := kadm.NewClient(c)
	if _, err := adm.CreateTopic(t.Context(), 1, 3, nil, "t"); err != nil {
		t.Fatal(err)
	}
	if err := adm.CommitAllOffsets(t.Context(), "g", offsetsOf("t", 0, 7)); err != nil {
		t.Fatal(err)
	}
	at := -1
	eventually(t, "one node answers for the group", func() error { // another may be elected at any time
		at = ps.Controller()
		return onlyOneAnswers(t, ps, c, at)
	})
	ps.down(at)
	eventually(t, "the offset is there under the next coordinator", func() error {
		// A client that knows the former one goes on dialing it until it asks for metadata.
		got, err := kadm.NewClient(ps.client()).FetchOffsets(t.Context(), "g")
		if err != nil {
			return err
		}
		if o, _ := got.Lookup("t", 0); o.At != 7 {
			return fmt.Errorf("it is %d", o.At)
		}
		return nil
	})
}

// onlyOneAnswers checks that the node at a place has the group's offset, and that the
// others refuse.
func onlyOneAnswers(t *testing.T, ps *peers, c *kgo.Client, at int) error {
	t.Helper()
	for i, node := range ps.Nodes() {
		req := kmsg.NewPtrOffsetFetchRequest()
		g := kmsg.NewOffsetFetchRequestGroup()
		g.Group = "g"
		req.Groups = append(req.Groups, g)
		got := requestAt(t, c.Broker(int(node.ID())), req).(*kmsg.OffsetFetchResponse).Groups[0]
		switch {
		case i == at && (got.ErrorCode != 0 || len(got.Topics) != 1 || got.Topics[0].Partitions[0].Offset != 7):
			return fmt.Errorf("the coordinator answers %+v", got)
		case i != at && got.ErrorCode != kerr.NotCoordinator.Code:
			return fmt.Errorf("node %d answers error %d, want %d", node.ID(), got.ErrorCode, kerr.NotCoordinator.Code)
		}
	}
	return nil
}

// Users and ACLs are the cluster's: what is told to one node holds on all.
func TestUsersAndACLsHoldOnEveryNode(t *testing.T) {
	ps := newPeers(t, 3, func(o *kafka.Options) { o.Authorize, o.SuperUsers = true, []string{"User:ANONYMOUS"} })
	adm := kadm.NewClient(ps.client())
	if _, err := adm.CreateTopic(t.Context(), 1, 3, nil, "t"); err != nil {
		t.Fatal(err)
	}
	changed, err := adm.AlterUserSCRAMs(t.Context(), nil, []kadm.UpsertSCRAM{{User: "ann", Mechanism: kadm.ScramSha512, Iterations: 4096, Password: "secret"}})
	if err != nil || changed.Error() != nil {
		t.Fatal(err, changed.Error())
	}
	acl := kadm.NewACLs().Allow("User:ann").AllowHosts().Topics("t").Operations(kadm.OpDescribe).ResourcePatternType(kadm.ACLPatternLiteral)
	if created, err := adm.CreateACLs(t.Context(), acl); err != nil || created[0].Err != nil {
		t.Fatal(err, created)
	}
	for i, f := range ps.faces {
		eventually(t, fmt.Sprintf("ann is let in by node %d", i), func() error {
			c, err := kgo.NewClient(kgo.SeedBrokers(f.scram), kgo.RequestRetries(2), kgo.MetadataMinAge(20*time.Millisecond),
				kgo.SASL(mechanisms("ann", "secret")[kafka.MechanismScramSHA512]))
			if err != nil {
				return err
			}
			defer c.Close()
			meta, err := kadm.NewClient(c).Metadata(t.Context(), "t")
			if err != nil {
				return err
			}
			var at []string
			for _, b := range meta.Brokers {
				at = append(at, fmt.Sprintf("%s:%d", b.Host, b.Port))
			}
			if want := []string{ps.faces[0].scram, ps.faces[1].scram, ps.faces[2].scram}; !slices.Equal(at, want) {
				return fmt.Errorf("it says that the nodes are at %v, want %v", at, want)
			}
			return meta.Topics["t"].Err
		})
	}
}

// requestAt sends a request to one node, without trying again elsewhere.
func requestAt(t *testing.T, at *kgo.Broker, req kmsg.Request) kmsg.Response {
	t.Helper()
	resp, err := at.Request(t.Context(), req)
	if err != nil {
		t.Fatalf("%s: %v", kmsg.NameForKey(req.Key()), err)
	}
	return resp
}
