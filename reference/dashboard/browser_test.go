package dashboard_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/google/go-cmp/cmp"

	"floodproof/reference/dashboard"
	"floodproof/reference/queue"
)

var lookAt = flag.String("look", "", "folder into which the browser's tests write what they saw")

// browse opens a browser, or skips. FLOODPROOF_REQUIRE makes the skip a failure.
func browse(t *testing.T) context.Context {
	t.Helper()
	var path string
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if found, err := exec.LookPath(name); err == nil {
			path = found
			break
		}
	}
	if path == "" && os.Getenv("FLOODPROOF_REQUIRE") != "" {
		t.Fatal("no browser was found: install chromium")
	}
	if path == "" || testing.Short() {
		t.Skip("NOT LOOKED AT IN A BROWSER: -short, or no chromium on this machine (apt install chromium)")
	}
	options := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]), chromedp.ExecPath(path), chromedp.Flag("disable-dev-shm-usage", true))
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox) // Chromium refuses to run as root with it.
	}
	ctx, cancel := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	if err := chromedp.Do(ctx); err != nil { // The browser lives as long as this context; the limit below is for what is done with it.
		t.Fatalf("start %s: %v", path, err)
	}
	ctx, cancel = context.WithTimeout(ctx, 90*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// step is something that is done in a browser.
type step = chromedp.Action[chromedp.Void]

// into keeps what an action returns.
func into[T any](to *T, a chromedp.Action[T]) step {
	return chromedp.Func(func(ctx context.Context, tab *chromedp.Target) (err error) {
		*to, err = a(ctx, tab)
		return err
	})
}

// as sets the width of the window and the theme.
func as(width int64, theme string) step {
	return chromedp.Steps(chromedp.EmulateViewport(width, 900), chromedp.Func(func(ctx context.Context, tab *chromedp.Target) error {
		_, err := cdp.Call(ctx, tab, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: theme}},
		})
		return err
	}))
}

// look keeps a picture if somebody wants to look at it.
func look(t *testing.T, name string) step {
	return chromedp.Func(func(ctx context.Context, tab *chromedp.Target) error {
		if *lookAt == "" {
			return nil
		}
		picture, err := chromedp.FullScreenshot(100)(ctx, tab)
		if err != nil {
			return err
		}
		t.Logf("wrote %s.png", name)
		return os.WriteFile(filepath.Join(*lookAt, name+".png"), picture, 0o600)
	})
}

// unreadableTexts lists what has less contrast than 4.5 to 1 with what is behind it (https://www.w3.org/TR/WCAG22/#contrast-minimum).
const unreadableTexts = `(() => {
  const rgb = (color) => color.match(/[\d.]+/g).map(Number);
  const light = (color) => {
    const [r, g, b] = rgb(color).slice(0, 3).map((c) => (c /= 255) <= .04045 ? c / 12.92 : ((c + .055) / 1.055) ** 2.4);
    return .2126 * r + .7152 * g + .0722 * b;
  };
  const behind = (element) => {
    for (let e = element; e; e = e.parentElement) {
      const color = getComputedStyle(e).backgroundColor;
      if ((rgb(color)[3] ?? 1) > 0) return color;
    }
    return "rgb(255, 255, 255)";
  };
  const found = [];
  for (const e of document.body.querySelectorAll("*")) {
    if (![...e.childNodes].some((n) => n.nodeType === Node.TEXT_NODE && n.textContent.trim())) continue;
    const [a, b] = [light(getComputedStyle(e).color), light(behind(e))];
    const contrast = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
    if (contrast < 4.5) found.push(e.textContent.trim().slice(0, 40) + ": contrast of " + contrast.toFixed(2) + ", want 4.5");
  }
  return found;
})()`

// TestLooks: in light and dark, wide and narrow, the numbers are live, no page is wider than its window, and text stands out from what is behind it.
func TestLooks(t *testing.T) {
	ctx := browse(t)
	s := newStore()
	limits := map[string]queue.Limit{"": {Name: "all", Rate: 40, Burst: 1}, "refunds": {Name: "all", Rate: 40, Burst: 1}, "orders": {Name: "orders", Rate: 1.5, Burst: 10}}
	url, _ := serve(t, dashboard.Config{Queue: s, Workers: workers(), Lanes: []string{"refunds"}, Limits: limits, Interval: 50 * time.Millisecond})
	event := eventLinks((&visitor{t: t, handler: newDashboard(t, dashboard.Config{Queue: s})}).page("/letters"))[0]
	backgrounds := map[string]string{}
	for _, view := range []struct {
		theme string
		width int64
	}{{"light", 1100}, {"dark", 1100}, {"light", 400}, {"dark", 400}} {
		for _, page := range []struct{ name, path string }{{"overview", "/"}, {"letters", "/letters"}, {"event", event + "&payload=show"}, {"find", "/event"}} {
			var overflow int
			var background string
			var unreadable []string
			name := page.name + "-" + view.theme + map[int64]string{1100: "", 400: "-narrow"}[view.width]
			actions := []step{as(view.width, view.theme), chromedp.Navigate(url + page.path), chromedp.WaitVisible("h1")}
			if page.name == "overview" {
				actions = append(actions, chromedp.WaitVisible(".state.live"))
			}
			actions = append(actions,
				into(&overflow, chromedp.Evaluate[int](`document.documentElement.scrollWidth - innerWidth`)),
				into(&background, chromedp.Evaluate[string](`getComputedStyle(document.body).backgroundColor`)),
				into(&unreadable, chromedp.Evaluate[[]string](unreadableTexts)),
				look(t, name))
			if err := chromedp.Do(ctx, actions...); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if overflow > 0 {
				t.Errorf("%s: the page is %d px wider than its window", name, overflow)
			}
			for _, text := range unreadable {
				t.Errorf("%s: %s", name, text)
			}
			backgrounds[view.theme] = background
		}
	}
	if backgrounds["light"] == backgrounds["dark"] {
		t.Errorf("the background is %s in both themes", backgrounds["light"])
	}
}

// TestKeyboard gives a dead letter back without a mouse, and sees the numbers of the overview change without loading it again. The browser's own rules (policy, cookies, origins) apply.
func TestKeyboard(t *testing.T) {
	ctx := browse(t)
	s := newStore()
	url, _ := serve(t, dashboard.Config{Queue: s, Interval: 50 * time.Millisecond})
	var skip, said string
	err := chromedp.Do(ctx,
		chromedp.Navigate(url+"/letters"), chromedp.WaitVisible("h1"),
		chromedp.KeyEvent(kb.Tab),
		into(&skip, chromedp.Evaluate[string](`document.activeElement.textContent`)),
		tabTo("Retry evt_2"), look(t, "focus"), chromedp.KeyEvent(kb.Enter),
		chromedp.WaitVisible(".said"), into(&said, chromedp.Text(".said")), look(t, "said"))
	if err != nil {
		t.Fatal(err)
	}
	if skip != "Skip to the content" {
		t.Errorf("first stop: got %q, want the way past the navigation", skip)
	}
	if said != "1 given back to the workers." {
		t.Errorf("after the button: got %q", said)
	}
	if diff := cmp.Diff([]string{"stripe evt_2"}, s.redriven()); diff != "" {
		t.Errorf("given back (-want +got):\n%s", diff)
	}
	if err := chromedp.Do(ctx, chromedp.Navigate(url), chromedp.WaitVisible(".state.live")); err != nil {
		t.Fatal(err)
	}
	s.mu.Lock()
	s.depth.Lanes[0].Waiting = 77
	s.mu.Unlock()
	if err := chromedp.Do(ctx, chromedp.Poll[chromedp.Void](`document.querySelector('[data-k="lane/0/waiting"]').textContent === "77"`)); err != nil {
		t.Errorf("the number on the page did not become 77: %v", err)
	}
}

// tabTo presses Tab until what has the focus has this label.
func tabTo(label string) step {
	return chromedp.Func(func(ctx context.Context, tab *chromedp.Target) error {
		for range 60 {
			focused, err := chromedp.Evaluate[string](`document.activeElement.getAttribute("aria-label") ?? ""`)(ctx, tab)
			if err != nil || focused == label {
				return err
			}
			if _, err := chromedp.KeyEvent(kb.Tab)(ctx, tab); err != nil {
				return err
			}
		}
		return fmt.Errorf("60 times Tab did not come to %q", label)
	})
}
