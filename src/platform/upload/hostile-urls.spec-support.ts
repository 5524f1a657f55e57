/** Addresses that URLs from outside must not reach: this machine, its network, cloud metadata and unusable ones. */
const FORBIDDEN: [number, number, number, number][] = [
  [127, 0, 0, 1],
  [127, 8, 9, 10],
  [10, 0, 0, 1],
  [10, 255, 255, 254],
  [172, 16, 0, 1],
  [172, 31, 255, 1],
  [192, 168, 0, 1],
  [192, 168, 1, 254],
  [169, 254, 169, 254],
  [169, 254, 170, 2],
  [100, 64, 0, 1],
  [100, 100, 100, 200],
  [0, 0, 0, 0],
  [224, 0, 0, 1],
  [255, 255, 255, 255],
  [198, 18, 0, 1],
  [192, 0, 0, 192],
  [192, 0, 2, 1],
  [203, 0, 113, 9],
  [240, 0, 0, 1],
  [172, 20, 10, 2],
  [100, 127, 255, 254],
];

const IPV6 = [
  '::',
  '::1',
  '0:0:0:0:0:0:0:1',
  '0000:0000:0000:0000:0000:0000:0000:0001',
  'fe80::1',
  'febf::1',
  'fec0::1',
  'fc00::1',
  'fd00:ec2::254',
  'fdff:ffff::1',
  'ff02::1',
  'ff05::2',
  '100::1',
  '2001::1',
  '2001:db8::1',
  '2001:10::1',
  '2002:7f00:1::',
  '3fff::1',
  '4000::1',
  '5f00::1',
  '64:ff9b:1::7f00:1',
];

/** Names without a public host, regardless of a resolver. */
const LOCAL_NAMES = [
  'localhost',
  'LOCALHOST',
  'localhost.',
  'a.localhost',
  'localhost.localdomain',
  'metadata',
  'metadata.google.internal',
  'instance-data.ec2.internal',
  'printer.local',
  'router.lan',
  'nas.home.arpa',
  'wiki.intranet',
  'db',
  'redis.test',
  'hidden.onion',
  'x.invalid',
];

const DISGUISES = ['①②⑦.⓪.⓪.①', '127。0。0。1', '１２７.0.0.1', '127%2e0%2e0%2e1', 'loc%61lhost', '⑯⑨.254.169.254'];

/** Every spelling of an IPv4 address that a parser or a resolver accepts. */
export function spellings([a, b, c, d]: [number, number, number, number]): string[] {
  const word = ((a << 24) | (b << 16) | (c << 8) | d) >>> 0;
  const hex = (value: number) => value.toString(16).padStart(2, '0');
  const groups = `${hex(a)}${hex(b)}:${hex(c)}${hex(d)}`;
  return [
    `${a}.${b}.${c}.${d}`,
    `${a}.${b}.${c}.${d}.`,
    `${word}`,
    `0x${word.toString(16)}`,
    `0${word.toString(8)}`,
    `0x${hex(a)}.0x${hex(b)}.0x${hex(c)}.0x${hex(d)}`,
    `0X${hex(a).toUpperCase()}.${b}.${c}.${d}`,
    `0${a.toString(8)}.0${b.toString(8)}.0${c.toString(8)}.0${d.toString(8)}`,
    `000${a.toString(8)}.${b}.${c}.${d}`,
    `${a}.${b}.${(c << 8) | d}`,
    `${a}.${(b << 16) | (c << 8) | d}`,
    `[::ffff:${a}.${b}.${c}.${d}]`,
    `[::ffff:${groups}]`,
    `[0:0:0:0:0:ffff:${groups}]`,
    `[::${groups}]`,
    `[::ffff:0:${groups}]`,
    `[64:ff9b::${groups}]`,
    `[64:ff9b:1::${groups}]`,
    `[2002:${groups}::1]`,
    `[2001:0:${groups}::1]`,
  ];
}

/** URLs that look like one of a public host, or that contain a second host. */
function tricks(host: string): string[] {
  return [
    `https://files.example.com@${host}/`,
    `https://files.example.com:443@${host}/`,
    `https://user:secret@${host}/a.pdf`,
    `https://files.example.com%40${host}/`,
    `https://files.example.com\\@${host}/`,
    `https://${host}\\@files.example.com/`,
    `https://${host}#@files.example.com/`,
    `https://${host}?@files.example.com/`,
    `https://@${host}/`,
    `http://${host}/`,
    `//${host}/`,
    `https:${host}`,
    `https:///${host}/`,
    `https://${host}\t/`,
    ` https://${host}/`,
    `https://${host}/\r\nhost: files.example.com`,
  ];
}

const SCHEMES = [
  'http://files.example.com/',
  'ftp://files.example.com/a.pdf',
  'file:///etc/passwd',
  'gopher://127.0.0.1:6379/_FLUSHALL',
  'dict://127.0.0.1:11211/stats',
  'ldap://127.0.0.1/',
  'javascript:alert(1)',
  'data:application/pdf;base64,JVBERi0=',
  'blob:https://files.example.com/1',
  'jar:https://files.example.com!/a',
  'unix:/var/run/docker.sock',
  'ws://files.example.com/',
  'about:blank',
  '',
  'a.pdf',
  '/a.pdf',
  'https://',
  'https://:443/',
  'https://[::1',
  'https://256.256.256.256/',
  'https://1.2.3.4.5/',
];

/**
 * URLs that must be rejected before anything is resolved.
 *
 * @param port of a trap on this machine
 */
export function hostileUrls(port: number): string[] {
  const plain = FORBIDDEN.flatMap(spellings).map((host) => `https://${host}:${port}/a.pdf`);
  const six = IPV6.map((host) => `https://[${host}]:${port}/a.pdf`);
  const names = [...LOCAL_NAMES, ...DISGUISES].map((host) => `https://${host}:${port}/a.pdf`);
  const tricky = ['127.0.0.1', '169.254.169.254', '[::1]'].flatMap((host) => tricks(`${host}:${port}`));
  return [...new Set([...plain, ...six, ...names, ...tricky, ...SCHEMES])];
}

/** The answers of a hostile resolver for public names, in order; the last one repeats. */
export const HOSTILE_ANSWERS: Record<string, string[][]> = {
  'private.example.com': [['10.0.0.1']],
  'loopback.example.com': [['127.0.0.1']],
  'loopback6.example.com': [['::1']],
  'mapped.example.com': [['::ffff:127.0.0.1']],
  'metadata.example.com': [['169.254.169.254']],
  'unspecified.example.com': [['0.0.0.0']],
  'mixed.example.com': [['93.184.216.34', '127.0.0.1']],
  'mixed6.example.com': [['2606:2800:220:1::1', 'fd00::1']],
  'nothing.example.com': [[]],
  '127.0.0.1.nip.example.com': [['127.0.0.1']],
  'rebinds.example.com': [['93.184.216.34'], ['127.0.0.1']],
  'rebinds6.example.com': [['2606:2800:220:1::1'], ['::1']],
  'rebinds-late.example.com': [['93.184.216.34'], ['93.184.216.34'], ['192.168.0.1']],
};
