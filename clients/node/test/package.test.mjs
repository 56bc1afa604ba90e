import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { before, after, test } from "node:test";
import { fileURLToPath, URL } from "node:url";
import { promisify } from "node:util";

const here = fileURLToPath(new URL(".", import.meta.url)); // Node 18 has no import.meta.dirname

const run = promisify(execFile);
const directory = join(here, "..");
const tool = (name) => join(directory, "node_modules/.bin", name);
let dir, tarball;

before(async () => {
  dir = await mkdtemp(join(tmpdir(), "flaked-package-"));
  tarball = await pack("first");
  const installed = join(dir, "user/node_modules/flaked");
  await mkdir(installed, { recursive: true });
  await run("tar", ["xzf", tarball, "-C", installed, "--strip-components=1"]);
  for (const needed of ["@types", "undici-types"]) {
    await symlink(join(directory, "node_modules", needed), join(dir, "user/node_modules", needed));
  }
});

after(() => rm(dir, { recursive: true }));

async function pack(name) {
  const to = join(dir, name);
  await mkdir(to);
  const { stdout } = await run("npm", ["pack", "--json", "--ignore-scripts", "--pack-destination", to], {
    cwd: directory,
  });
  return join(to, JSON.parse(stdout)[0].filename);
}

test("two packages of the same source have the same bytes", async () => {
  assert.ok((await readFile(await pack("second"))).equals(await readFile(tarball)));
});

test("the package has the program and its types, no tests, and needs nothing", async () => {
  const { stdout } = await run("tar", ["tzf", tarball]);
  for (const name of stdout.trim().split("\n")) {
    assert.match(name, /^package\/(LICENSE|README\.md|package\.json|dist\/\w+\.(js|mjs|d\.ts|d\.mts))$/);
  }
  const { dependencies, peerDependencies } = JSON.parse(await readFile(join(directory, "package.json"), "utf8"));
  assert.deepEqual([dependencies, peerDependencies], [undefined, undefined]);
});

test("import and require load the same classes", async () => {
  await writeFile(
    join(dir, "user/both.mjs"),
    `import { createRequire } from "node:module";
     import * as imported from "flaked";
     const required = createRequire(import.meta.url)("flaked");
     const names = Object.keys(required).sort();
     console.log(names.join(), names.every((name) => imported[name] === required[name]));`,
  );
  const { stdout } = await run(process.execPath, [join(dir, "user/both.mjs")]);
  assert.equal(stdout, "Client,ClosedError,FlakedError,RefusedError,UnavailableError,bigintReplacer true\n");
});

test("a user's program has types, as a module and with require", async () => {
  const body = `
    async function main(): Promise<bigint> {
      await using client = new Client({ addresses: ["a"], tls: { minVersion: "TLSv1.3" }, prefetch: 10 });
      const order: Sequence = client.sequence("order");
      const { first, last } = await order.range(5);
      const many: bigint[] = await client.nextMany(3, { signal: AbortSignal.timeout(50), timeoutMs: 20 });
      try {
        return first + last + many[0]! + (await order.next({ key: "k" }));
      } catch (error) {
        if (error instanceof RefusedError) console.log(error.reason?.length, error.retryAfterMs, error.address);
        throw error;
      }
    }
    void main;
    // @ts-expect-error an ID is not a number
    const wrong: Promise<number> = new Client().next();
    void wrong;`;
  await writeFile(join(dir, "user/a.mts"), `import { Client, RefusedError, type Sequence } from "flaked";${body}`);
  await writeFile(
    join(dir, "user/b.cts"),
    `import flaked = require("flaked");
     const { Client, RefusedError } = flaked;
     type Sequence = flaked.Sequence;
     type RefusedError = flaked.RefusedError;${body}`,
  );
  const options = { module: "nodenext", target: "es2022", lib: ["es2022", "esnext.disposable"], types: ["node"] };
  const compilerOptions = { ...options, strict: true, noUncheckedIndexedAccess: true, noEmit: true };
  await writeFile(join(dir, "user/tsconfig.json"), JSON.stringify({ compilerOptions }));
  await run(tool("tsc"), ["-p", join(dir, "user")]).catch(({ stdout }) => assert.fail(stdout));
});

test("publint and arethetypeswrong find nothing", async () => {
  await run(tool("publint"), ["--strict", tarball], { cwd: directory }).catch(({ stdout }) => assert.fail(stdout));
  await run(tool("attw"), [tarball, "--no-emoji"]).catch(({ stdout }) => assert.fail(stdout));
});
