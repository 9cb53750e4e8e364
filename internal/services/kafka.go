package services

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Kafka is a running broker of one, its own controller (KRaft). Topics are not
// created by being asked for.
type Kafka struct {
	*Server

	controller *portLease
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
	k, err := startKafka(ctx, c, dir, Options{}, "-Xms512m", "-Xmx512m", option)
	if err != nil {
		return err
	}
	return errors.Join(k.stopWithin(trainPatience), k.Close())
}

// StartKafka installs Apache Kafka 4.4 if needed, which takes a JDK and Maven, and
// starts a broker. Options.Args are settings, such as
// "log.flush.interval.messages=1". Without a variant it is made to start soon;
// the variant "fast" is made to run fast, as for production: all of the JVM's
// compiler and a heap of 1 GiB.
func StartKafka(ctx context.Context, o Options) (*Kafka, error) {
	jvm := []string{"-Xms512m", "-Xmx512m", "-XX:TieredStopAtLevel=1"}
	switch o.Variant {
	case "":
	case "fast":
		jvm = []string{"-Xms1g", "-Xmx1g", "-server", "-XX:MaxGCPauseMillis=20", "-XX:InitiatingHeapOccupancyPercent=35", "-XX:+ExplicitGCInvokesConcurrent"}
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
	return startKafka(ctx, c, install, o, jvm...)
}

// startKafka starts a broker of the installation with the given options for its
// JVM.
func startKafka(ctx context.Context, c cache, install string, o Options, jvm ...string) (*Kafka, error) {
	s, err := newServer(ctx, c, "kafka", o)
	if err != nil {
		return nil, err
	}
	controller, err := c.leasePort(0)
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	k := &Kafka{Server: s, controller: controller}
	settings := filepath.Join(s.Dir, "server.properties")
	err = k.open(ctx, launch{
		name: "kafka",
		command: func(context.Context) (*exec.Cmd, error) {
			if err := os.WriteFile(settings, []byte(k.settings(o.Args)), 0o644); err != nil {
				return nil, err
			}
			if err := copyTemplate(install, filepath.Join(s.Dir, "data")); err != nil {
				return nil, err
			}
			return kafkaJava(context.Background(), install, append(slices.Clone(jvm), "-Ddaybook.log=info", "kafka.Kafka", settings)...)
		},
		ready: k.ping,
	})
	if err != nil {
		return nil, errors.Join(err, controller.Close())
	}
	return k, nil
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
	return strings.Join(append([]string{
		"process.roles=broker,controller", "node.id=1",
		fmt.Sprintf("controller.quorum.voters=1@127.0.0.1:%d", k.controller.port),
		fmt.Sprintf("listeners=PLAINTEXT://%s,CONTROLLER://127.0.0.1:%d", k.Addr, k.controller.port),
		"advertised.listeners=PLAINTEXT://" + k.Addr,
		"controller.listener.names=CONTROLLER", "inter.broker.listener.name=PLAINTEXT",
		"listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
		"log.dirs=" + filepath.Join(k.Dir, "data"),
		"auto.create.topics.enable=false",
		"offsets.topic.replication.factor=1", "offsets.topic.num.partitions=1",
		"transaction.state.log.replication.factor=1", "transaction.state.log.min.isr=1", "transaction.state.log.num.partitions=1",
		"share.coordinator.state.topic.replication.factor=1", "share.coordinator.state.topic.min.isr=1",
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
