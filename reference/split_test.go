package reference

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"floodproof/reference/queue"
)

// received sends one delivery and returns the jobs that reached the queue.
func received(t *testing.T, s sample) []queue.Job {
	t.Helper()
	q := &fakeQueue{}
	if w := send(newTestReceiver(t, q, nil), s.request()); w.Code != 200 {
		t.Fatalf("%s: got %d %s, want 200", s.provider, w.Code, w.Body)
	}
	jobs, calls := q.jobs()
	if calls > 1 {
		t.Errorf("%s: %d calls of Enqueue for one request, want one", s.provider, calls)
	}
	return jobs
}

func TestReceiverMakesJobs(t *testing.T) {
	stripe, shopify, github := goodBody("stripe"), goodBody("shopify"), goodBody("github")
	const thin = `{"id":"evt_test_65","object":"v2.core.event","type":"v1.billing.meter.error_report_triggered","created":"2026-11-02T08:59:55.000Z","related_object":{"id":"mtr_1","type":"billing.meter"}}`
	const push = `{"ref":"refs/heads/main","repository":{"id":186853002,"pushed_at":1793609998,"updated_at":"2026-11-01T00:00:00Z"}}`
	const closed = `{"action":"closed","issue":{"updated_at":"2026-11-02T08:59:57Z","id":444500041}}`
	for _, tc := range []struct {
		name string
		s    sample
		want queue.Job
	}{
		{"stripe", sign("stripe", stripe), queue.Job{Provider: "stripe", EventID: "evt_1NG8Du", Type: "customer.subscription.updated", Resource: "subscription/sub_9", Version: 1793610000000, Payload: []byte(stripe)}},
		{"stripe, thin", sign("stripe", thin), queue.Job{Provider: "stripe", EventID: "evt_test_65", Type: "v1.billing.meter.error_report_triggered", Resource: "billing.meter/mtr_1", Version: 1793609995000, Payload: []byte(thin)}},
		{"shopify", sign("shopify", shopify), queue.Job{
			Provider: "shopify", EventID: "98880550-7158-44d4-b7cd-2c97c8a091b5", DeliveryID: "b54557e4-bdd9-4b37-8a5f-bf7d70bcd043",
			Type: "orders/updated", Resource: "orders/6722181529774", Version: 1793609998000, Payload: []byte(shopify),
		}},
		{"shopify, deletion", sign("shopify", `{"id":7}`).with("X-Shopify-Topic", "products/delete"), queue.Job{
			Provider: "shopify", EventID: "98880550-7158-44d4-b7cd-2c97c8a091b5", DeliveryID: "b54557e4-bdd9-4b37-8a5f-bf7d70bcd043",
			Type: "products/delete", Resource: "products/7", Version: 1793609999500, Payload: []byte(`{"id":7}`),
		}},
		{"hubspot", sign("hubspot", " [ "+hubspotGood+" ] "), queue.Job{Provider: "hubspot", EventID: "12345:678:email:1564113600000", Type: "contact.propertyChange", Resource: "contact/678", Version: 1564113600000, Payload: []byte(hubspotGood)}},
		{"github", sign("github", github), queue.Job{
			Provider: "github", EventID: "72d3162e-cc78-11e3-81ab-4c9367dc0958", DeliveryID: "72d3162e-cc78-11e3-81ab-4c9367dc0958",
			Type: "pull_request.opened", Resource: "pull_request/279147437", Version: 1793609997000, Payload: []byte(github),
		}},
		{"github, push", sign("github", push).with("X-GitHub-Event", "push"), queue.Job{
			Provider: "github", EventID: "72d3162e-cc78-11e3-81ab-4c9367dc0958", DeliveryID: "72d3162e-cc78-11e3-81ab-4c9367dc0958",
			Type: "push", Resource: "repository/186853002", Version: 1793609998000, Payload: []byte(push),
		}},
		{"github, issues", sign("github", closed).with("X-GitHub-Event", "issues"), queue.Job{
			Provider: "github", EventID: "72d3162e-cc78-11e3-81ab-4c9367dc0958", DeliveryID: "72d3162e-cc78-11e3-81ab-4c9367dc0958",
			Type: "issues.closed", Resource: "issue/444500041", Version: 1793609997000, Payload: []byte(closed),
		}},
		{"klaviyo", sign("klaviyo", goodBody("klaviyo")), queue.Job{Provider: "klaviyo", EventID: "4vRpBT", Type: "event:klaviyo.sent_sms", Resource: "profile/01GDDKASAP", Version: 1793609996000, Payload: []byte(klaviyoGood)}},
	} {
		tc.want.ReceivedAt = signingNow
		if diff := cmp.Diff([]queue.Job{tc.want}, received(t, tc.s)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.name, diff)
		}
	}
}

func TestHubSpotEventID(t *testing.T) {
	for item, want := range map[string]string{
		`{"subscriptionId":12345,"objectId":678,"propertyName":"email","occurredAt":1564113600000,"subscriptionType":"c"}`:                                                                                                 "12345:678:email:1564113600000",
		`{"eventId":1,"subscriptionId":12345,"occurredAt":1564113600000,"subscriptionType":"contact.creation","attemptNumber":3,"objectId":123}`:                                                                           "12345:123::1564113600000",
		`{"subscriptionId":1,"objectId":2,"propertyName":null,"occurredAt":3,"eventType":"c"}`:                                                                                                                             "1:2::3",
		`{"subscriptionId":1,"fromObjectId":2,"toObjectId":3,"associationType":"CONTACT_TO_COMPANY","occurredAt":4,"subscriptionType":"contact.associationChange","associationRemoved":false,"isPrimaryAssociation":true}`: "1:2-3:CONTACT_TO_COMPANY+primary:4",
		`{"subscriptionId":1,"fromObjectId":2,"toObjectId":3,"associationType":"CONTACT_TO_COMPANY","occurredAt":4,"subscriptionType":"contact.associationChange","associationRemoved":true,"isPrimaryAssociation":false}`: "1:2-3:CONTACT_TO_COMPANY+removed:4",
	} {
		jobs := received(t, sign("hubspot", "["+item+"]"))
		if len(jobs) != 1 || jobs[0].EventID != want || jobs[0].DeadOnArrival != "" {
			t.Errorf("%s: got %+v, want the id %q", item, jobs, want)
		}
	}
}

func sha256ID(item string) string {
	sum := sha256.Sum256([]byte(item))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// wantItem is what should become of one item of a batch.
type wantItem struct {
	id   string
	body string
	dead bool
}

func TestReceiverKeepsMalformedItemsOfABatch(t *testing.T) {
	const (
		noID    = `{"subscriptionType":"contact.creation","objectId":5}`
		float   = `{"subscriptionId":1,"objectId":1e3,"occurredAt":3,"subscriptionType":"c"}`
		noType  = `{"subscriptionId":1,"objectId":9,"occurredAt":3,"propertyName":"x"}`
		noTopic = `{"external_id":"k2","payload":{}}`
		noBody  = `{"external_id":"k3","topic":"event:x","payload":null}`
		noName  = `{"topic":"event:x","payload":{}}`
	)
	for _, tc := range []struct {
		provider string
		items    []string
		want     []wantItem
	}{
		{"hubspot", []string{hubspotGood, noID, "7", "null", float, noType}, []wantItem{
			{"12345:678:email:1564113600000", hubspotGood, false},
			{sha256ID(noID), noID, true}, {sha256ID("7"), "7", true}, {sha256ID("null"), "null", true}, {sha256ID(float), float, true}, {"1:9:x:3", noType, true},
		}},
		{"klaviyo", []string{noTopic, klaviyoGood, `"x"`, noBody, noName}, []wantItem{
			{"k2", noTopic, true}, {"4vRpBT", klaviyoGood, false}, {sha256ID(`"x"`), `"x"`, true}, {"k3", noBody, true}, {sha256ID(noName), noName, true},
		}},
	} {
		body := "[" + strings.Join(tc.items, " ,\n") + "]"
		if tc.provider == "klaviyo" {
			body = `{"data":` + body + `}`
		}
		var got []wantItem
		for _, job := range received(t, sign(tc.provider, body)) {
			got = append(got, wantItem{job.EventID, string(job.Payload), job.DeadOnArrival != ""})
		}
		if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(wantItem{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.provider, diff)
		}
	}
}

func TestReceiverTakesAnIDOfABatchOnce(t *testing.T) {
	retried := strings.Replace(hubspotGood, `"attemptNumber":0`, `"attemptNumber":1`, 1)
	broken := strings.Replace(hubspotGood, `"subscriptionType":"contact.propertyChange",`, "", 1)
	other := strings.Replace(hubspotGood, `"objectId":678`, `"objectId":679`, 1)
	for _, tc := range []struct {
		name  string
		items []string
		want  []string
	}{
		{"the first of two equals", []string{hubspotGood, other, retried}, []string{hubspotGood, other}},
		{"the usable one after a malformed one", []string{broken, other, hubspotGood}, []string{hubspotGood, other}},
		{"the usable one before a malformed one", []string{hubspotGood, broken}, []string{hubspotGood}},
		{"none of none", nil, nil},
	} {
		var got []string
		for _, job := range received(t, sign("hubspot", "["+strings.Join(tc.items, ",")+"]")) {
			got = append(got, string(job.Payload))
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.name, diff)
		}
	}
}

func TestReceiverBoundsABatch(t *testing.T) {
	for n, want := range map[int]int{maxEvents: 200, maxEvents + 1: 413} {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `,{"subscriptionId":1,"objectId":%d,"occurredAt":3,"subscriptionType":"c"}`, i)
		}
		q := &fakeQueue{}
		w := send(newTestReceiver(t, q, nil), sign("hubspot", "["+b.String()[1:]+"]").request())
		if jobs, _ := q.jobs(); w.Code != want || want == 200 && len(jobs) != n {
			t.Errorf("%d events: got %d with %d jobs, want %d", n, w.Code, len(jobs), want)
		}
	}
}

// TestRealBodies splits sample payloads of the providers, if a directory with them is at hand (one folder per provider).
func TestRealBodies(t *testing.T) {
	dir := os.Getenv("FLOODPROOF_FIXTURES")
	if dir == "" {
		if os.Getenv("FLOODPROOF_REQUIRE") != "" {
			t.Fatal("FLOODPROOF_REQUIRE is set and FLOODPROOF_FIXTURES is not: set it to a directory with github/*.json")
		}
		t.Skip("SKIPPED: set FLOODPROOF_FIXTURES to a directory with github/*.json, shopify/*.json and stripe/*.json, bodies as the providers send them")
	}
	for _, provider := range []string{"github", "shopify", "stripe"} {
		paths, _ := filepath.Glob(filepath.Join(dir, provider, "*.json"))
		if len(paths) == 0 {
			t.Errorf("no bodies in %s", filepath.Join(dir, provider))
		}
		for _, path := range paths {
			checkRealBody(t, provider, path)
		}
	}
}

func checkRealBody(t *testing.T, provider, path string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	s := sign(provider, string(text))
	event, _, _ := strings.Cut(filepath.Base(path), "-")
	switch provider {
	case "github":
		s = s.with("X-GitHub-Event", strings.TrimSuffix(event, ".json"))
	case "shopify": // The recorded body is a string inside the file.
		var recorded struct{ Body string }
		if err := json.Unmarshal(text, &recorded); err != nil {
			t.Fatal(err)
		}
		s = sign(provider, recorded.Body)
	case "stripe": // An object; an event wraps it.
		if filepath.Base(path) != "event.json" {
			s = sign(provider, `{"id":"evt_1","created":1793610000,"type":"x.updated","data":{"object":`+string(text)+`}}`)
		}
	}
	for _, job := range received(t, s) {
		if job.Resource == "" || job.Version == 0 {
			t.Errorf("%s: resource %q, version %d: want both", path, job.Resource, job.Version)
		}
	}
}
