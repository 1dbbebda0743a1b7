// Package dashboard shows a pipeline to the people who look after it, in a browser: what waits in each lane, what the workers do, which events were given up and why,
// what is in hand and for how long, and the whole
// history of one event. It gives dead letters back or drops them: one, all, those of a reason, or those of a time.
//
// The pages are made on the server, need nothing from elsewhere, and work without scripts; a small one keeps the numbers of the overview up to date from a
// stream of server-sent events.
//
// # Who may look, and who may act
//
// [Dashboard.Serve] refuses to listen to anything but this machine without a password. With one, every request needs it (HTTP Basic, any user name), and so does a scrape
// of the metrics. Behind that, and without it too, stand the doors against web pages that a browser on the same machine has open as well:
//
//   - the Host must be an address, localhost or a configured name, so that a name that somebody points at this machine (DNS rebinding) opens nothing;
//   - a request with another page's Origin is refused, and what acts must come from a page of ours: a token that only such a page holds, beside
//     the browser's own statement (Sec-Fetch-Site);
//   - the content security policy allows no script and no style but our two files, no frame, and forms that lead here only.
//
// Event ids, reasons and payloads are hostile: they are escaped by html/template, characters that do not show or turn the direction of writing are spelled out, and a payload
// is only shown after a button was pressed, which is logged.
package dashboard
