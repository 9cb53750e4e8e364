package services

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Kafka is a running broker of one, its own controller (KRaft). Topics are not
// created by being asked for.
type Kafka struct {
	*Server

	controller *portLease
	install    string
}

// kafkaCluster is the id that all test clusters have.
const kafkaCluster = "RGF5Ym9va1Rlc3RzT25seQ"

func kafkaServer() javaServer {
	return javaServer{name: "kafka", layout: "1", finish: func(context.Context, jdk, string) error { return nil }}
}

// StartKafka installs Apache Kafka 4.4 if needed, which takes a JDK and Maven, and
// starts a broker. Options.Args are settings, such as
// "log.flush.interval.messages=1".
func StartKafka(ctx context.Context, o Options) (*Kafka, error) {
	if o.Variant != "" {
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
	s, err := newServer(ctx, c, "kafka", o)
	if err != nil {
		return nil, err
	}
	controller, err := c.leasePort(0)
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	k := &Kafka{Server: s, controller: controller, install: install}
	settings := filepath.Join(s.Dir, "server.properties")
	err = k.open(ctx, launch{
		name: "kafka",
		command: func() (*exec.Cmd, error) {
			if err := os.WriteFile(settings, []byte(k.settings(o.Args)), 0o644); err != nil {
				return nil, err
			}
			if err := k.format(settings); err != nil {
				return nil, err
			}
			return k.java("-Xms512m", "-Xmx512m", "-XX:TieredStopAtLevel=1", "-Ddaybook.log=info", "kafka.Kafka", settings), nil
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

// java returns a command of the installation: options, a class and its arguments.
func (k *Kafka) java(args ...string) *exec.Cmd {
	classPath := filepath.Join(k.install, "src") + ":" + filepath.Join(k.install, "jars", "*")
	cmd := exec.Command(findJava().program("java"), append([]string{"-XX:+UseG1GC", "-cp", classPath}, args...)...)
	cmd.Dir = k.Dir
	return cmd
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
	}, more...), "\n") + "\n"
}

// format prepares an empty data directory.
func (k *Kafka) format(settings string) error {
	if _, err := os.Stat(filepath.Join(k.Dir, "data", "meta.properties")); err == nil {
		return nil
	}
	if err := runQuiet(k.java("-Xmx256m", "-XX:TieredStopAtLevel=1", "kafka.tools.StorageTool", "format", "-t", kafkaCluster, "-c", settings)); err != nil {
		return fmt.Errorf("formatting the data directory: %w", err)
	}
	return nil
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
