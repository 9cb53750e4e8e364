package services

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/errgroup"
)

// Kafka is a running broker, its own controller (KRaft). Topics are not created by
// being asked for.
type Kafka struct {
	*Server

	controller *portLease
	id         int
	voters     []*Kafka // all controllers, itself among them
}

// kafkaCluster is the id that all test clusters have.
const kafkaCluster = "RGF5Ym9va1Rlc3RzT25seQ"

func kafkaServer() javaServer {
	return javaServer{name: "kafka", layout: "3", finish: formatKafka, train: trainKafka}
}

// formatKafka makes the template of a data directory. What a broker finds there
// is the ids of cluster and node; addresses come from its settings.
func formatKafka(ctx context.Context, _ jdk, dir string) error {
	settings := filepath.Join(dir, "format.properties")
	text := strings.Join([]string{
		"process.roles=broker,controller", "node.id=1", "controller.quorum.voters=1@127.0.0.1:1",
		"listeners=PLAINTEXT://127.0.0.1:2,CONTROLLER://127.0.0.1:1", "controller.listener.names=CONTROLLER",
		"log.dirs=" + filepath.Join(dir, "template"), "",
	}, "\n")
	if err := os.WriteFile(settings, []byte(text), 0o644); err != nil {
		return err
	}
	cmd, err := kafkaJava(ctx, dir, "-Xmx256m", "kafka.tools.StorageTool", "format", "-t", kafkaCluster, "-c", settings)
	if err != nil {
		return err
	}
	if err := runQuiet(cmd); err != nil {
		return fmt.Errorf("formatting a data directory: %w", err)
	}
	return os.Remove(settings)
}

func trainKafka(ctx context.Context, c cache, dir, option string) error {
	k, err := newKafka(ctx, c, 1, Options{})
	if err != nil {
		return err
	}
	k.voters = []*Kafka{k}
	if err := k.start(ctx, dir, Options{}, "-Xms512m", "-Xmx512m", option); err != nil {
		return errors.Join(err, k.Close())
	}
	return errors.Join(k.stopWithin(trainPatience), k.Close())
}

// StartKafka installs Apache Kafka 4.4 if needed, which takes a JDK and Maven, and
// starts a broker. Options.Args are settings, such as
// "log.flush.interval.messages=1". Without a variant it is made to start soon;
// the variant "fast" is made to run fast, as for production: all of the JVM's
// compiler and a heap of 1 GiB.
func StartKafka(ctx context.Context, o Options) (*Kafka, error) {
	all, err := startKafkas(ctx, 1, o)
	if err != nil {
		return nil, err
	}
	return all[0], nil
}

// StartKafkas starts n brokers that are one cluster, as StartKafka does one: what they
// keep for themselves is on three of them. Options.Dir and Port are not for several. A
// broker of the variant "fast" has a heap of 512 MiB here.
func StartKafkas(ctx context.Context, n int, o Options) ([]*Kafka, error) {
	if o.Dir != "" || o.Port != 0 {
		return nil, errors.New("several brokers have no directory and port in common")
	}
	return startKafkas(ctx, n, o)
}

func startKafkas(ctx context.Context, n int, o Options) ([]*Kafka, error) {
	heap := "512m"
	if n == 1 && o.Variant == "fast" {
		heap = "1g"
	}
	jvm := []string{"-Xms" + heap, "-Xmx" + heap}
	switch o.Variant {
	case "":
		jvm = append(jvm, "-XX:TieredStopAtLevel=1")
	case "fast":
		jvm = append(jvm, "-server", "-XX:MaxGCPauseMillis=20", "-XX:InitiatingHeapOccupancyPercent=35", "-XX:+ExplicitGCInvokesConcurrent")
	default:
		return nil, fmt.Errorf("kafka has no variant %q", o.Variant)
	}
	c, err := openCache()
	if err != nil {
		return nil, err
	}
	install, err := kafkaServer().install(ctx, c)
	if err != nil {
		return nil, err
	}
	var all []*Kafka
	for id := range n {
		k, err := newKafka(ctx, c, id+1, o)
		if err != nil {
			return nil, errors.Join(err, closeAll(all))
		}
		all = append(all, k)
	}
	for _, k := range all {
		k.voters = all
	}
	// None of several answers before most of them run.
	var starting errgroup.Group
	for _, k := range all {
		starting.Go(func() error { return k.start(ctx, install, o, jvm...) })
	}
	if err := starting.Wait(); err != nil {
		return nil, errors.Join(err, closeAll(all))
	}
	return all, nil
}

func closeAll(all []*Kafka) (err error) {
	for _, k := range all {
		err = errors.Join(err, k.Close())
	}
	return err
}

// newKafka reserves what a broker needs.
func newKafka(ctx context.Context, c cache, id int, o Options) (*Kafka, error) {
	s, err := newServer(ctx, c, "kafka", o)
	if err != nil {
		return nil, err
	}
	controller, err := c.leasePort(0)
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return &Kafka{Server: s, controller: controller, id: id}, nil
}

// start starts the broker with the given options for its JVM.
func (k *Kafka) start(ctx context.Context, install string, o Options, jvm ...string) error {
	settings, data := filepath.Join(k.Dir, "server.properties"), filepath.Join(k.Dir, "data")
	return k.open(ctx, launch{
		name: "kafka",
		command: func(context.Context) (*exec.Cmd, error) {
			if err := os.WriteFile(settings, []byte(k.settings(o.Args)), 0o644); err != nil {
				return nil, err
			}
			if err := copyTemplate(install, data); err != nil {
				return nil, err
			}
			if err := k.own(data); err != nil {
				return nil, err
			}
			return kafkaJava(context.Background(), install, append(slices.Clone(jvm), "-Ddaybook.log=info", "kafka.Kafka", settings)...)
		},
		ready: k.ping,
	})
}

// own makes a copy of the template that of this broker: its id, and an id of the directory
// that no other broker has.
func (k *Kafka) own(data string) error {
	if len(k.voters) == 1 {
		return nil
	}
	path := filepath.Join(data, "meta.properties")
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	lines := strings.Split(string(text), "\n")
	for i, line := range lines {
		switch {
		case strings.HasPrefix(line, "node.id="):
			lines[i] = fmt.Sprintf("node.id=%d", k.id)
		case strings.HasPrefix(line, "directory.id="):
			lines[i] = "directory.id=" + base64.RawURLEncoding.EncodeToString(append([]byte("DaybookDirector"), byte(k.id)))
		}
	}
	return os.WriteFile(path, []byte(strings.Join(lines, "\n")), 0o644)
}

// Close ends the broker for good, as Server.Close does.
func (k *Kafka) Close() error {
	err := k.Server.Close()
	if k.controller != nil {
		err = errors.Join(err, k.controller.Close())
		k.controller = nil
	}
	return err
}

// kafkaJava returns a command of the installation: options, a class and its
// arguments.
func kafkaJava(ctx context.Context, install string, args ...string) (*exec.Cmd, error) {
	log := "-Dlog4j2.configurationFile=" + filepath.Join(install, "src", "log4j2.properties")
	return javaCommand(ctx, install, append([]string{"-XX:+UseG1GC", log}, args...)...)
}

func (k *Kafka) settings(more []string) string {
	var voters []string
	for _, v := range k.voters {
		voters = append(voters, fmt.Sprintf("%d@127.0.0.1:%d", v.id, v.controller.port))
	}
	copies, least := min(3, len(k.voters)), min(2, len(k.voters))
	return strings.Join(append([]string{
		"process.roles=broker,controller", fmt.Sprintf("node.id=%d", k.id),
		"controller.quorum.voters=" + strings.Join(voters, ","),
		fmt.Sprintf("listeners=PLAINTEXT://%s,CONTROLLER://127.0.0.1:%d", k.Addr, k.controller.port),
		"advertised.listeners=PLAINTEXT://" + k.Addr,
		"controller.listener.names=CONTROLLER", "inter.broker.listener.name=PLAINTEXT",
		"listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
		"log.dirs=" + filepath.Join(k.Dir, "data"),
		"auto.create.topics.enable=false",
		fmt.Sprintf("min.insync.replicas=%d", least),
		fmt.Sprintf("offsets.topic.replication.factor=%d", copies), "offsets.topic.num.partitions=1",
		fmt.Sprintf("transaction.state.log.replication.factor=%d", copies), fmt.Sprintf("transaction.state.log.min.isr=%d", least),
		"transaction.state.log.num.partitions=1",
		fmt.Sprintf("share.coordinator.state.topic.replication.factor=%d", copies), fmt.Sprintf("share.coordinator.state.topic.min.isr=%d", least),
		"group.initial.rebalance.delay.ms=0",
		// A killed broker is let in again when its old session has ended.
		"broker.session.timeout.ms=3000", "broker.heartbeat.interval.ms=500",
	}, more...), "\n") + "\n"
}

// ping asks for the cluster's metadata.
func (k *Kafka) ping(ctx context.Context) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(k.Addr))
	if err != nil {
		return err
	}
	defer client.Close()
	return client.Ping(ctx)
}
