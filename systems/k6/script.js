// Requests for one page: each virtual user sends the next one after its answer, or, with RATE, k6 starts that many a second.
import http from 'k6/http';

const { URL, VUS, MS, RATE } = __ENV;
const users = Number(VUS);
const closed = { executor: 'constant-vus', vus: users };
const open = { executor: 'constant-arrival-rate', rate: Number(RATE), timeUnit: '1s', preAllocatedVUs: users };

export const options = {
  scenarios: {
    load: { ...(RATE ? open : closed), duration: `${MS}ms`, gracefulStop: '1s' },
  },
  discardResponseBodies: true,
  maxRedirects: 0,
  summaryTrendStats: ['avg', 'min', 'med', 'p(90)', 'p(99)', 'max'],
};

export default function () {
  http.get(URL);
}

export function handleSummary(data) {
  const failed = data.metrics.http_req_failed.values;
  const times = data.metrics.http_req_duration.values;
  const late = data.metrics.dropped_iterations;
  const lines = [
    `seconds ${data.state.testRunDurationMs / 1000}`,
    `good ${failed.fails}`,
    `failed ${failed.passes}`,
    `dropped ${late ? late.values.count : 0}`,
  ];
  for (const name of options.summaryTrendStats) {
    lines.push(`${name} ${times[name]} ms`);
  }
  return { stdout: lines.join('\n') + '\n' };
}
