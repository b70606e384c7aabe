#!/usr/bin/python3
# SPDX-FileCopyrightText: The Larch authors
# SPDX-License-Identifier: Apache-2.0
"""Opens a page of cases in headless Chromium: page_in_browser.py CHROMIUM PAGE CASES [SCREENSHOT.png]

Checks that it loads by file:// without a message of the console and asks for nothing but files, and that it sorts,
filters and scrolls. Prints the seconds. Chromium is spoken to by its pipe (DevTools protocol).
"""
import base64
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time


class Browser:
    def __init__(self, program, profile):
        (their_in, self.out), (self.inp, their_out) = os.pipe(), os.pipe()
        self.process = subprocess.Popen(
            ['sh', '-c', f'exec "$0" "$@" 3<&{their_in} 4>&{their_out}', program, '--headless=new', '--no-sandbox',
             '--disable-gpu', '--disable-dev-shm-usage', '--window-size=1400,1000', f'--user-data-dir={profile}',
             '--remote-debugging-pipe', 'about:blank'],
            pass_fds=(their_in, their_out), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(their_in)
        os.close(their_out)
        self.rest, self.last, self.events, self.session = b'', 0, [], {}

    def message(self):
        while b'\0' not in self.rest:
            more = os.read(self.inp, 1 << 20)
            if not more:
                sys.exit('Chromium ended')
            self.rest += more
        text, self.rest = self.rest.split(b'\0', 1)
        return json.loads(text)

    def call(self, method, **params):
        self.last += 1
        os.write(self.out, json.dumps({'id': self.last, 'method': method, 'params': params, **self.session}).encode() + b'\0')
        while (answer := self.message()).get('id') != self.last:
            self.events.append(answer)
        assert 'error' not in answer, (method, answer)
        return answer['result']

    def value(self, script):
        answer = self.call('Runtime.evaluate', expression=script, returnByValue=True, awaitPromise=True)
        assert 'exceptionDetails' not in answer, answer
        return answer['result'].get('value')


def check(browser, page, cases):
    target = browser.call('Target.createTarget', url='about:blank')['targetId']
    browser.session = {'sessionId': browser.call('Target.attachToTarget', targetId=target, flatten=True)['sessionId']}
    for domain in ('Page', 'Runtime', 'Log', 'Network'):
        browser.call(domain + '.enable')
    start = time.monotonic()
    browser.call('Page.navigate', url=pathlib.Path(page).absolute().as_uri())
    while not any(event.get('method') == 'Page.loadEventFired' for event in browser.events):
        browser.events.append(browser.message())
    seconds = time.monotonic() - start

    def ids(action='0'):
        return browser.value(f"{action}; [...document.querySelectorAll('article:not([hidden]) h2 span')].map(s => s.textContent)")

    def press(button):
        return ids(f"document.querySelector('button[data-{button}]').click()")

    first = ids()
    assert len(first) == cases, (len(first), cases)
    up, down = press('column=id'), press('column=id')
    assert up == down[::-1] and sorted(up) == sorted(first), 'ids are sorted both ways'
    press('column=seconds')
    times = browser.value("[...document.querySelectorAll('dt')].filter(dt => dt.textContent == 'seconds')"
                          ".map(dt => Number(dt.nextElementSibling.textContent))")
    assert times == sorted(times) and len(times) == cases, 'seconds are sorted as numbers'
    assert press('column=""') == first, 'the worst are first again'
    failed = press('status=failed')
    assert 0 < len(failed) < cases and failed == first[:len(failed)], failed
    press('status=""')
    assert ids(f"find.value = {json.dumps(first[-1] + '.png')}, find.dispatchEvent(new Event('input'))") == first[-1:]
    ids("find.value = '', find.dispatchEvent(new Event('input'))")
    scrolled = browser.value("""new Promise(done => { const start = performance.now();
        document.querySelector('article:last-of-type').scrollIntoView();
        requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now() - start))); })""")
    assert scrolled < 2000 and browser.value('scrollY > 0'), scrolled
    browser.value('scrollTo(0, 0)')
    assert browser.value("""new Promise(done => { const look = () => document.images[0].complete
        ? done(document.images[0].naturalWidth > 0) : setTimeout(look, 50); look(); })"""), 'pictures are shown'
    for event in browser.events:
        assert event.get('method') not in ('Runtime.exceptionThrown', 'Runtime.consoleAPICalled', 'Log.entryAdded'), event
        url = event.get('params', {}).get('request', {}).get('url', 'data:')
        assert url.startswith(('file://', 'data:')), url
    print(f'{cases} cases: loaded in {seconds:.2f} s, scrolled to the end in {scrolled:.0f} ms')


def main():
    program, page, cases = sys.argv[1], sys.argv[2], int(sys.argv[3])
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        browser = Browser(program, profile)
        try:
            check(browser, page, cases)
            for name in sys.argv[4:]:
                pathlib.Path(name).write_bytes(base64.b64decode(browser.call('Page.captureScreenshot')['data']))
        finally:
            browser.process.kill()
            browser.process.wait()


if __name__ == '__main__':
    main()
