// Providers whose own package is in Go: go/main.go asks it.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

export const goVersion = (module) =>
  readFileSync(join(import.meta.dirname, 'go', 'go.mod'), 'utf8').split('\n').map((line) => line.trim().split(' ')).find(([name]) => name === module)[1];

export const goVerify = (provider) => async ({ headers, body }, secret) => {
  const program = process.env.CONFORMANCE_GO;
  if (!program) {
    throw new Error('CONFORMANCE_GO must name the program that run.sh builds');
  }
  return execFileSync(program, { input: JSON.stringify({ provider, secret, headers, body }), encoding: 'utf8' }).trim() === 'true';
};
