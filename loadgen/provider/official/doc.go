// Package official checks the simulated providers against the libraries that real receivers verify with: the providers' own ones for Go or, where there is
// none, the best kept. It has tests and nothing else.
//
// What a simulated provider sends must be accepted by its library, and parsed into the event that was meant; each kind of forgery must be refused; and what a library's
// own test helper signs must be accepted by the reference receiver. So three implementations that share no code have to agree: generator,
// library and receiver. Published signature vectors, which the packages themselves test, are a handful of fixed inputs; these are thousands.
//
// # Why a module of its own
//
// A module that requires these libraries would hand them, nineteen megabytes for a dozen functions, to everybody who requires floodproof. The price is
// that commands such as `go test ./...` stop at the border: `make test` and `make lint` cross it, and so does
//
//	cd loadgen/provider/official && go test ./...
//
// Where floodproof itself comes to need a higher version of a module that both use, go says "updates to go.mod needed": run go mod tidy in this folder.
//
// # Who has a library
//
//   - Their own: Stripe, Svix, Square, Twilio, SendGrid, Paddle, Mailgun, Adyen, and Standard Webhooks (the symmetric scheme alone).
//   - Kept by others: google/go-github for GitHub, bold-commerce/go-shopify for Shopify, slack-go/slack for Slack.
//   - None in Go that verifies, as far as is known (November 2026): HubSpot, Klaviyo, Intercom, GoHighLevel, WooCommerce, and the asymmetric scheme of
//     Standard Webhooks. For PayPal there is plutov/paypal, which asks PayPal over the network.
//
// A helper that signs is exported by four of them: Stripe, Standard Webhooks, Svix and Adyen.
package official
