import { headersOf, messageOf, newSecret, testMessage } from './message.js';

const NOW = new Date('2021-02-25T15:02:10.900Z');

describe('the headers of a message', () => {
  // The published vector of the Standard Webhooks reference libraries ("sign function works").
  const message = { id: 'msg_p5jXN8AQM9LWM0D4loKWxJek', body: '{"test": 2432232314}' };
  const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';
  const signature = 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=';

  test('sign id, time in whole seconds and body as Standard Webhooks says', () => {
    expect(headersOf(message, [secret], NOW)).toEqual({
      'webhook-id': message.id,
      'webhook-timestamp': '1614265330',
      'webhook-signature': signature,
    });
  });

  test('hold one signature for each secret, in their order', () => {
    const other = newSecret(Buffer.alloc(32, 1));
    const [first, second, ...more] = headersOf(message, [secret, other], NOW)['webhook-signature']?.split(' ') ?? [];
    expect([first, more]).toEqual([signature, []]);
    expect(second).toBe(headersOf(message, [other], NOW)['webhook-signature']);
    expect(second).not.toBe(signature);
  });
});

test('a secret is whsec_ and base64', () => {
  expect(newSecret(Buffer.from('0123456789'))).toBe('whsec_MDEyMzQ1Njc4OQ==');
});

test('the message of an event has the cursor as its id, and no data of the event replaces cursor or subject', () => {
  const data = { state: 'Done', cursor: 'forged', subject: 'forged' };
  const { id, body } = messageOf({ cursor: '1-7', type: 'session.completed', at: NOW, subject: 'sessions/s', data });
  expect(id).toBe('1-7');
  expect(JSON.parse(body)).toEqual({
    type: 'session.completed',
    timestamp: '2021-02-25T15:02:10.900Z',
    data: { state: 'Done', cursor: '1-7', subject: 'sessions/s' },
  });
});

test('a test message cannot be mistaken for an event', () => {
  const { id, body } = testMessage('u', 'subscriptions/s', NOW);
  expect(id).toBe('test-u');
  expect(JSON.parse(body)).toEqual({
    type: 'subscription.test',
    timestamp: '2021-02-25T15:02:10.900Z',
    data: { subject: 'subscriptions/s' },
  });
});
