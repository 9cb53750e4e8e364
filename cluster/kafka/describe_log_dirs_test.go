package kafka_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
)

func TestLogDirsSayWhatTopicsTakeOfTheDisk(t *testing.T) {
	bothWays(t, func(t *testing.T, b *broker) {
		b.topic("t", 3, nil)
		b.topic("other", 1, nil)
		produce(t, b.client(), numbered("t", 1000)...)
		all, err := b.admin().DescribeAllLogDirs(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		dir := all[1][b.nopts.Dir]
		topic := dir.Topics["t"]
		if len(all) != 1 || len(topic) != 3 || len(dir.Topics) != 2 {
			t.Fatalf("described are %+v", all)
		}
		onDisk, sum := int64(0), int64(0)
		for _, p := range topic {
			sum += p.Size
		}
		id := b.node.Meta().Streams()[1].ID.String()
		err = filepath.Walk(filepath.Join(b.nopts.Dir, "streams", id), func(_ string, info os.FileInfo, err error) error {
			if err == nil && info.Mode().IsRegular() {
				onDisk += info.Size()
			}
			return err
		})
		if err != nil || sum < onDisk-3 || sum > onDisk || sum < 1000*10 {
			t.Errorf("the partitions take %d bytes, on the disk are %d, %v", sum, onDisk, err)
		}
		var set kadm.TopicsSet
		set.Add("t", 1)
		some, err := b.admin().DescribeAllLogDirs(t.Context(), set)
		if got := some[1][b.nopts.Dir].Topics; err != nil || len(got) != 1 || len(got["t"]) != 1 {
			t.Errorf("one partition asked for: %+v, %v", got, err)
		}
	})
}
