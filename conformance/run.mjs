// Delivers what the providers' own SDKs sign to the built binary, prints a matrix of provider, SDK and case, and exits
// non-zero if anything is not as it should be. One file a provider, in providers/. Arguments, if any, name providers.
import { randomUUID } from 'node:crypto';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { cases } from './cases.mjs';
import { startApplication, startCaddy } from './servers.mjs';

const here = import.meta.dirname;
const problems = [];

async function npmVersion(sdk) {
  return JSON.parse(await readFile(join(here, 'node_modules', sdk, 'package.json'), 'utf8')).version;
}

// A provider comes before its variants: as file names, - would come before the dot.
const byName = (a, b) => (basename(a, '.mjs') < basename(b, '.mjs') ? -1 : 1);

async function loadProviders(chosen) {
  const files = (await readdir(join(here, 'providers'))).filter((file) => file.endsWith('.mjs')).sort(byName);
  const providers = await Promise.all(files.map(async (file) => {
    const { default: provider } = await import(join(here, 'providers', file));
    const version = provider.version ?? await npmVersion(provider.sdk);
    return { ...provider, name: basename(file, '.mjs'), version };
  }));
  return providers.filter(({ name }) => chosen.length === 0 || chosen.includes(name));
}

// The SDK itself must take what was made with it, and refuse it with another key; else the matrix would prove nothing.
async function checkSDK(provider) {
  const delivery = await provider.deliver({ id: randomUUID(), secret: provider.secret, at: Date.now() });
  const verdict = async (secret) => {
    try {
      return await provider.verify(delivery, secret);
    } catch {
      return false;
    }
  };
  const own = await verdict(provider.secret);
  const other = await verdict(provider.otherSecret);
  return own === true && other === false ? [] : [`the SDK says ${own} with the right secret and ${other} with another`];
}

async function deliver(url, application, path, { headers, body, query = '' }, want) {
  const before = application.runs(path);
  const response = await fetch(url + path + query, { method: 'POST', headers, body, redirect: 'manual' });
  await response.arrayBuffer();
  const got = {
    status: response.status,
    result: response.headers.get('webhook-dedup'),
    runs: application.runs(path) - before,
  };
  return Object.keys(want)
    .filter((key) => got[key] !== want[key])
    .map((key) => `${key} is ${got[key]}, not ${want[key]}`);
}

async function runCase(provider, test, url, application) {
  const id = randomUUID();
  const sign = (changes = {}) => provider.deliver({ id, secret: provider.secret, at: Date.now(), ...changes });
  const path = '/' + provider.name;
  const wrong = [];
  if (test.before) {
    wrong.push(...await deliver(url, application, path, await sign(), test.before));
  }
  wrong.push(...await deliver(url, application, path, await test.make(provider, sign), test.want));
  return wrong;
}

function note(provider, what, wrong) {
  problems.push(...wrong.map((problem) => `${provider.name}, ${what}: ${problem}`));
  return wrong.length ? 'FAIL' : 'ok';
}

// Kept for docs/providers.md: nothing in it changes from run to run.
async function keep(providers, [head, ...rows]) {
  const entry = ({ provider, variant = '', sdk, version }, i) => ({ provider, variant, sdk: `${sdk}@${version}`, results: rows[i].slice(2) });
  const matrix = { cases: head.slice(2), deliveries: providers.map(entry) };
  await writeFile(join(here, 'matrix.json'), JSON.stringify(matrix, null, 2) + '\n');
}

function print(rows) {
  const widths = rows[0].map((_, column) => Math.max(...rows.map((row) => row[column].length)));
  for (const row of rows) {
    console.log(row.map((cell, column) => cell.padEnd(widths[column])).join('  ').trimEnd());
  }
}

async function main() {
  const binary = process.env.WEBHOOK_DEDUP_BINARY;
  if (!binary) {
    throw new Error('WEBHOOK_DEDUP_BINARY must name the binary; run.sh builds one');
  }
  const chosen = process.argv.slice(2);
  const providers = await loadProviders(chosen);
  const application = await startApplication();
  let caddy;
  try {
    caddy = await startCaddy(binary, providers, application.port);
    const rows = [['provider', 'SDK', 'SDK agrees', ...cases.map(({ name }) => name)]];
    for (const provider of providers) {
      const row = [provider.name, `${provider.sdk}@${provider.version}`, note(provider, 'SDK', await checkSDK(provider))];
      for (const test of cases) {
        const applies = !test.only || test.only(provider);
        row.push(applies ? note(provider, test.name, await runCase(provider, test, caddy.url, application)) : '-');
      }
      rows.push(row);
    }
    print(rows);
    for (const { name, secret, secretIsPublic } of providers) {
      if (!secretIsPublic && caddy.log().includes(secret)) {
        problems.push(`${name}: the log holds the secret`);
      }
    }
    if (chosen.length === 0 && problems.length === 0) {
      await keep(providers, rows);
    }
  } finally {
    await caddy?.stop();
    await application.stop();
  }
  for (const problem of problems) {
    console.error('FAIL ' + problem);
  }
  console.log(problems.length ? `${problems.length} problems` : 'all as it should be; - means that the provider has no such thing');
  process.exitCode = problems.length ? 1 : 0;
}

await main();
