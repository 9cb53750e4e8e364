package redis_test

import (
	"strings"
	"testing"

	"github.com/daybook-data/daybook/configs"
	"github.com/daybook-data/daybook/sinks/redis"
)

func TestConfigIsCheckedBeforeItRuns(t *testing.T) {
	t.Parallel()
	for yaml, want := range map[string]string{
		`addr: 127.0.0.1:6379`:                               `"key" is missing`,
		`key: "order:{id"`:                                   `never closed`,
		`key: "all"`:                                         `all rows would have one key`,
		`key: "{yyyy}:{id}"`:                                 `{yyyy} can't stand here`,
		`key: "daybook:{id}"`:                                `Daybook's own`,
		`{key: "{id}", type: list}`:                          `not one of hash, string`,
		`{key: "{id}", tombstone_ttl: 0s}`:                   `above zero`,
		`{key: "{id}", ca_file: /x}`:                         `tls: true`,
		`{key: "{id}", tls: true, ca_file: /nowhere/ca.pem}`: `reading ca_file`,
		`{key: "{id}", type: string, columns: [a]}`:          `type: hash`,
		`{key: "{id}", password: geheim}`:                    `{env: NAME}`,
		`{key: "{id}", truncate: maybe}`:                     `not one of delete, ignore, stop`,
	} {
		err := configs.Decode("shop.yaml", []byte(yaml), new(redis.Config))
		if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "shop.yaml:1:") {
			t.Errorf("%s\ngives %v\nwant %s", yaml, err, want)
		}
	}
	if err := configs.Decode("shop.yaml", []byte(`{addr: "r:6379", key: "order:{id}", type: string, ttl: 1h}`), new(redis.Config)); err != nil {
		t.Error(err)
	}
}

func TestShadowHasAPrefixOfItsOwn(t *testing.T) {
	t.Parallel()
	c := newConfig("r:6379")
	if err := c.Into("next"); err != nil || c.Key != "next:order:{id}" {
		t.Errorf("the shadow writes to %s, %v", c.Key, err)
	}
	for _, bad := range []string{"", "{x}", "daybook:v"} {
		if err := newConfig("r:6379").Into(bad); err == nil {
			t.Errorf("the shadow %q is taken", bad)
		}
	}
}
