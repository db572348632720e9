// Writes vectors.json: deliveries signed by the providers' own npm packages, at fixed times. Run it in a folder where they are
// installed (npm install stripe @octokit/webhooks-methods standardwebhooks svix):
//
//	cp vectors.mjs /some/folder && cd /some/folder && node vectors.mjs > vectors.json
import { createHmac } from "node:crypto";
import { readFileSync } from "node:fs";
import Stripe from "stripe";
import { sign } from "@octokit/webhooks-methods";
import { Webhook as Standard } from "standardwebhooks";
import { Webhook as Svix } from "svix";

const version = (name) => JSON.parse(readFileSync(`node_modules/${name}/package.json`)).version;
const time = 1790000000;
const bodies = {
  "small": '{"id":"evt_1","type":"a.b","object":"event"}',
  "unicode and escapes": '{"id":"evt_2","name":"Zoë \u{1F600} \\u00e9","type":"a.b"}',
  "CRLF at the end": '{"id":"evt_3","type":"a.b"}\r\n',
  "indented": JSON.stringify({ id: "evt_4", type: "a.b", list: [1, 2, { a: null }] }, null, 2),
  "large": JSON.stringify({ id: "evt_5", type: "a.b", text: "x".repeat(3000) }),
};
const base64Secret = "whsec_" + Buffer.from("0123456789abcdef0123456789abcdef").toString("base64");
const vectors = [];
const add = (sdk, provider, name, secret, headers, body) =>
  vectors.push({ sdk: sdk && `${sdk} ${version(sdk)}`, provider, name, secret, time, headers, body });

const stripe = new Stripe("sk_test_unused");
for (const [name, body] of Object.entries(bodies)) {
  const secret = "whsec_example_not_base64";
  const header = stripe.webhooks.generateTestHeaderString({ timestamp: time, payload: body, secret });
  add("stripe", "stripe", name, secret, { "Stripe-Signature": header }, body);

  const github = "It's a Secret to Everybody";
  add("@octokit/webhooks-methods", "github", name, github, {
    "X-Hub-Signature-256": await sign(github, body), "X-GitHub-Hook-ID": "7", "X-GitHub-Delivery": "72d3162e-cc78-11e3-81ab-4c9367dc0958",
  }, body);

  const date = new Date(time * 1000);
  add("standardwebhooks", "standard-webhooks", name, base64Secret, {
    "Webhook-Id": "msg_1", "Webhook-Timestamp": String(time), "Webhook-Signature": new Standard(base64Secret).sign("msg_1", date, body),
  }, body);
  for (const prefix of ["Svix", "Webhook"]) {
    add("svix", "svix", `${name}, ${prefix} headers`, base64Secret, {
      [prefix + "-Id"]: "msg_2", [prefix + "-Timestamp"]: String(time), [prefix + "-Signature"]: new Svix(base64Secret).sign("msg_2", date, body),
    }, body);
  }

  // The scheme of @shopify/shopify-api, lib/webhooks/validate, which only verifies.
  const shopify = "hush";
  const mac = createHmac("sha256", shopify).update(body).digest("base64");
  vectors.push({ sdk: `node:crypto ${process.version}`, provider: "shopify", name, secret: shopify, time, headers: {
    "X-Shopify-Hmac-Sha256": mac, "X-Shopify-Shop-Domain": "a.myshopify.com", "X-Shopify-Topic": "orders/create", "X-Shopify-Event-Id": "98880550-7158-44d4-b7cd-2c97c8a091b5",
  }, body });
}
console.log(JSON.stringify(vectors, null, 1));
