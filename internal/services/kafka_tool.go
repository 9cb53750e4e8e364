package services

import (
	"context"
	"os/exec"
)

// KafkaTool installs Apache Kafka if needed, which takes a JDK and Maven, and
// returns a command that runs one of its command-line tools, given by its class,
// such as "org.apache.kafka.tools.ConsoleProducer". They use Kafka's own Java
// clients.
func KafkaTool(ctx context.Context, class string, args ...string) (*exec.Cmd, error) {
	c, err := openCache()
	if err != nil {
		return nil, err
	}
	install, err := kafkaServer().install(ctx, c)
	if err != nil {
		return nil, err
	}
	return kafkaJava(ctx, install, append([]string{"-Xmx256m", "-XX:TieredStopAtLevel=1", class}, args...)...)
}
