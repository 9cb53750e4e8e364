package elasticsearch_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/daybook-data/daybook/configs"
	"github.com/daybook-data/daybook/sinks/elasticsearch"
)

func TestConfigIsCheckedBeforeItRuns(t *testing.T) {
	t.Setenv("SINK_TEST_SECRET", "x")
	bad := filepath.Join(t.TempDir(), "bad.json")
	if err := os.WriteFile(bad, []byte(`{"aliases":{}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for yaml, want := range map[string]string{
		`urls: ["http://es:9200"]`:                                     `"index" is missing`,
		`{index: orders, urls: []}`:                                    `must not be empty`,
		`{index: orders, urls: ["es:9200"]}`:                           `http`,
		`{index: orders, urls: ["http://u:p@es:9200"]}`:                `user or password`,
		`{index: "shop-{table"}`:                                       `never closed`,
		`{index: "Bad Name"}`:                                          `holds a space`,
		`{index: "_orders"}`:                                           `begins with`,
		`{index: "orders-{op}"}`:                                       `{op} can't stand here`,
		`{index: orders, id: all}`:                                     `all rows would be one document`,
		`{index: orders, id: "{yyyy}-{id}"}`:                           `{yyyy} can't stand here`,
		`{index: orders, routing: "{"}`:                                `never closed`,
		`{index: orders, refresh: sometimes}`:                          `not one of interval, flush`,
		`{index: orders, gc_deletes: 5s}`:                              `must be from`,
		`{index: orders, api_key: {env: SINK_TEST_SECRET}, user: ann}`: `one or the other`,
		`{index: orders, password: {env: SINK_TEST_SECRET}}`:           "without `user`",
		`{index: orders, index_file: /nowhere/index.json}`:             `no such file`,
		`{index: orders, index_file: "` + bad + `"}`:                   `unknown field "aliases"`,
		`{index: orders, ca_file: /nowhere/ca.pem}`:                    `ca_file: open /nowhere/ca.pem: no such file`,
		`{index: orders, ca_file: "` + bad + `"}`:                      `holds no certificate`,
	} {
		err := configs.Decode("shop.yaml", []byte(yaml), new(elasticsearch.Config))
		if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "shop.yaml:1:") {
			t.Errorf("%s\ngives %v\nwant %s", yaml, err, want)
		}
	}
	good := `{urls: ["https://a:9200", "https://b:9200"], index: "Shop-{table}-{yyyy.MM}", id: "", api_key: {env: SINK_TEST_SECRET}}`
	if err := configs.Decode("shop.yaml", []byte(good), new(elasticsearch.Config)); err != nil {
		t.Error(err)
	}
}

// A shadow named as the live index is would take a stretch of the past into it.
func TestTheLiveIndexIsNoShadow(t *testing.T) {
	for _, index := range []string{"shop-{table}", "orders"} {
		c := &elasticsearch.Config{Index: index}
		if err := c.Into(index); err == nil || !strings.Contains(err.Error(), "is the live index") {
			t.Errorf("into %s: got %v, want a refusal", index, err)
		}
	}
}
