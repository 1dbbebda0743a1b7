package provider

import (
	"slices"
	"sync"
)

// providers builds every provider once: reading and splitting the body templates takes milliseconds. The result is never written to afterwards.
var providers = sync.OnceValue(func() []*Provider {
	return []*Provider{
		newStripe(), newShopify(), newHubSpot(), newGitHub(), newKlaviyo(),
		newStandardWebhooks(), newStandardEd25519(), newSvix(), newSlack(), newSquare(), newPayPal(),
		newMailgun(), newSendGrid(), newAdyen(), newWooCommerce(),
		newTwilio(), newPaddle(), newIntercom(), newGoHighLevel(),
	}
})

// All returns every provider in a fixed order: stripe, shopify, hubspot, github, klaviyo, standard-webhooks, standard-webhooks-ed25519, svix, slack,
// square, paypal, mailgun, sendgrid, adyen, woocommerce, twilio, paddle,
// intercom, gohighlevel. The slice is the caller's; the providers in it are shared and
// must not be changed (copy the struct first). It is safe for concurrent use.
func All() []*Provider {
	return slices.Clone(providers())
}

// Find returns the provider of that name ("stripe"). It is safe for concurrent use.
func Find(name string) (*Provider, bool) {
	for _, p := range providers() {
		if p.Name == name {
			return p, true
		}
	}
	return nil, false
}
