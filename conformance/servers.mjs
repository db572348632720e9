// The application that counts, and the Caddy in front of it.
import { spawn } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { createServer as createSocket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

// startApplication counts the requests of each path.
export async function startApplication() {
  const runs = new Map();
  const server = createServer((request, response) => {
    request.resume();
    request.on('end', () => {
      const [path] = request.url.split('?');
      runs.set(path, (runs.get(path) ?? 0) + 1);
      response.end('done');
    });
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    port: server.address().port,
    runs: (path) => runs.get(path) ?? 0,
    stop: () => new Promise((resolve) => { server.closeAllConnections(); server.close(resolve); }),
  };
}

// startCaddy serves one route a provider, /<name>, on the embedded store.
export async function startCaddy(binary, providers, applicationPort) {
  const dir = await mkdtemp(join(tmpdir(), 'conformance-'));
  const port = await freePort();
  const certified = providers.filter(({ certificate }) => certificate);
  const pem = (name) => join(dir, name + '.pem');
  await Promise.all(certified.map(({ name, certificate }) => writeFile(pem(name), certificate)));
  const routes = providers.map(({ name, provider, secret, publicURL, certificate }) => {
    const more = [publicURL && 'public_url ' + publicURL, certificate && 'certificate ' + pem(name)].filter(Boolean);
    return `
	handle /${name} {
		webhook_dedup ${provider} {
			${[`secret "${secret}"`, ...more].join('\n\t\t\t')}
		}
		reverse_proxy 127.0.0.1:${applicationPort}
	}`;
  });
  const caddyfile = join(dir, 'Caddyfile');
  await writeFile(caddyfile, `{
	admin off
	auto_https off
	persist_config off
	webhook_dedup {
		store file {
			path ${join(dir, 'events.db')}
		}
	}
}

http://:${port} {
	bind 127.0.0.1
${routes.join('\n')}
}
`);
  const env = { ...process.env, HOME: dir, XDG_CONFIG_HOME: join(dir, 'config'), XDG_DATA_HOME: join(dir, 'data') };
  if (certified.length) {
    // They sign themselves, so they are the roots too.
    env.SSL_CERT_FILE = pem('roots');
    await writeFile(env.SSL_CERT_FILE, certified.map(({ certificate }) => certificate).join(''));
  }
  const child = spawn(binary, ['run', '--config', caddyfile, '--adapter', 'caddyfile'], { env, stdio: ['ignore', 'pipe', 'pipe'] });
  let log = '';
  child.stdout.on('data', (text) => { log += text; });
  child.stderr.on('data', (text) => { log += text; });
  child.on('error', (error) => { log += error; }); // the binary is not there: it never starts
  const ended = new Promise((resolve) => child.on('close', resolve));
  const stop = async () => {
    child.kill('SIGTERM');
    await Promise.race([ended, sleep(10_000).then(() => child.kill('SIGKILL'))]);
    await rm(dir, { recursive: true, force: true });
  };

  const url = `http://127.0.0.1:${port}`;
  for (const deadline = Date.now() + 60_000; ; await sleep(50)) {
    if (child.pid === undefined || child.exitCode !== null || Date.now() > deadline) {
      await stop();
      throw new Error(`Caddy did not start:\n${log}`);
    }
    if (await fetch(url).then(() => true, () => false)) {
      return { url, stop, log: () => log };
    }
  }
}

async function freePort() {
  const socket = createSocket();
  await new Promise((resolve) => socket.listen(0, '127.0.0.1', resolve));
  const { port } = socket.address();
  await new Promise((resolve) => socket.close(resolve));
  return port;
}
