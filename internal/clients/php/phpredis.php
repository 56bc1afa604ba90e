<?php
// php phpredis.php HOST PORT: asks a node for IDs as a program with phpredis
// would, and prints them one a line.
declare(strict_types=1);

function strings(string $what, mixed $value, ?int $n = null): array
{
    $ids = $n === null ? [$value] : $value;
    if (!is_array($ids) || count($ids) !== ($n ?? 1)) {
        throw new Exception("$what: " . json_encode($value));
    }
    foreach ($ids as $id) {
        if (!is_string($id) || !preg_match('/^[1-9][0-9]*$/', $id)) {
            throw new Exception("$what: " . json_encode($value));
        }
        echo $id, "\n";
    }
    return array_values($ids);
}

function same(string $what, mixed $got, mixed $want): void
{
    if ($got !== $want) {
        throw new Exception("$what: " . json_encode($got) . ', not ' . json_encode($want));
    }
}

$r = new Redis();
$r->connect($argv[1], (int) $argv[2], 10.0);

[$id] = strings('GET order', $r->get('order'));
// A number is a key like any other: it gets one reply. The PING shows that no reply is
// left over.
strings('GET 42', $r->get('42'));
same('PING after GET 42', $r->ping('still in step'), 'still in step');
strings('GET 0', $r->get('0'));
strings('MGET of numbers', $r->mGet(['1', '2', '2']), 3);
strings('GET order COUNT 100', $r->rawCommand('GET', 'order', 'COUNT', '100'), 100);

$pipeline = $r->multi(Redis::PIPELINE);
for ($i = 0; $i < 1000; $i++) {
    $pipeline->get((string) $i);
}
strings('pipeline', $pipeline->exec(), 1000);

$r->setOption(Redis::OPT_PREFIX, 'my app/');
strings('GET with a prefix', $r->get('order 7'));
strings('MGET with a prefix', $r->mGet(['a', 'b']), 2);
$r->setOption(Redis::OPT_PREFIX, '');

same('COUNT 0', $r->rawCommand('GET', 'order', 'COUNT', '0'), false);
same('COUNT 0 says', substr((string) $r->getLastError(), 0, 26), 'ERR a count must be 1 to 1');
strings('after an error', $r->get('order'));
same('SELECT', $r->select(0), true);
same('CLIENT SETNAME', $r->client('setname', 'e2e'), true);
same('CLIENT GETNAME', $r->client('getname'), 'e2e');
same('DECODE', explode(' ', $r->rawCommand('DECODE', $id))[0], "id=$id");
same('INFO', ctype_digit((string) $r->info('stats')['ids']), true);
