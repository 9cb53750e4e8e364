package kafka_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/daybook-data/daybook/cluster"
	"github.com/daybook-data/daybook/cluster/kafka"
)

// Apache Kafka's own tools make a user and its ACLs, and its clients log in as it: in
// the middle of transactions too, and again and again.
func TestJavaClientsLogInAndKeepToTheirACLs(t *testing.T) {
	t.Parallel()
	b := newBroker(t, false, func(_ *cluster.Options, k *kafka.Options) {
		k.Authorize, k.SuperUsers = true, []string{"User:root"}
	})
	b.user("root", "secret")
	b.addr = b.also(kafka.Access{Mechanisms: allMechanisms})
	client := func(user, mechanism, more string) string {
		path := filepath.Join(t.TempDir(), "client.properties")
		module := "org.apache.kafka.common.security.scram.ScramLoginModule"
		if mechanism == kafka.MechanismPlain {
			module = "org.apache.kafka.common.security.plain.PlainLoginModule"
		}
		text := fmt.Sprintf("security.protocol=SASL_PLAINTEXT\nsasl.mechanism=%s\nsasl.jaas.config=%s required username=\"%s\" password=\"secret\";\n%s",
			mechanism, module, user, more)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	root := client("root", kafka.MechanismPlain, "")
	tool(t, b, "", "org.apache.kafka.tools.ConfigCommand", "--bootstrap-server", b.addr, "--command-config", root,
		"--alter", "--add-config", "SCRAM-SHA-512=[iterations=8192,password=secret]", "--entity-type", "users", "--entity-name", "ann")
	tool(t, b, "", "org.apache.kafka.tools.TopicCommand", "--bootstrap-server", b.addr, "--command-config", root, "--create", "--topic", "app.t", "--partitions", "2")
	acls := []string{"--bootstrap-server", b.addr, "--command-config", root}
	tool(t, b, "", "org.apache.kafka.tools.AclCommand", append(acls, "--add", "--allow-principal", "User:ann", "--producer", "--topic", "app.",
		"--resource-pattern-type", "prefixed", "--transactional-id", "id")...)
	tool(t, b, "", "org.apache.kafka.tools.AclCommand", append(acls, "--add", "--allow-principal", "User:ann", "--consumer", "--topic", "app.t", "--group", "g")...)
	if listed := tool(t, b, "", "org.apache.kafka.tools.AclCommand", append(acls, "--list", "--topic", "app.t")...); !strings.Contains(listed, "principal=User:ann") {
		t.Errorf("the ACLs are listed as\n%s", listed)
	}
	// The server ends sessions after a second and a half: the client renews its own.
	ann := client("ann", kafka.MechanismScramSHA512, "transactional.id=id\n")
	renewing := b.also(kafka.Access{Mechanisms: allMechanisms, Reauthenticate: 1500e6})
	tool(t, b, "", "org.apache.kafka.tools.ProducerPerformance", "--topic", "app.t", "--num-records", "4000", "--record-size", "100", "--throughput", "1000",
		"--command-config", ann, "--bootstrap-server", renewing, "--transaction-duration-ms", "100")
	out := tool(t, b, "", "org.apache.kafka.tools.consumer.ConsoleConsumer", "--bootstrap-server", b.addr, "--topic", "app.t", "--group", "g", "--from-beginning",
		"--command-config", client("ann", kafka.MechanismScramSHA512, "isolation.level=read_committed\n"), "--max-messages", "4000", "--timeout-ms", "60000")
	if !strings.Contains(out, "Processed a total of 4000 messages") {
		t.Errorf("the consumer says\n%.500s ... %s", out, out[max(0, len(out)-300):])
	}
	if _, err := kadm.NewClient(b.as("root")).CreateTopic(t.Context(), 1, 1, nil, "other"); err != nil {
		t.Fatal(err)
	}
	byPlain := b.at(b.addr, kgo.SASL(mechanisms("ann", "secret")[kafka.MechanismPlain]))
	if err := byPlain.ProduceSync(t.Context(), numbered("other", 1)...).FirstErr(); !errors.Is(err, kerr.TopicAuthorizationFailed) {
		t.Errorf("ann wrote to another topic: %v", err)
	}
}
