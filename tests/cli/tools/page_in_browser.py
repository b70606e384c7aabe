#!/usr/bin/python3
# SPDX-FileCopyrightText: The Larch authors
# SPDX-License-Identifier: Apache-2.0
"""Opens a page of cases in headless Chromium: page_in_browser.py CHROMIUM PAGE CASES [SCREENSHOT.png]

Checks that it loads by file:// within ten seconds without a message of the console and without asking for anything but
files, and that it sorts, filters and scrolls. Prints the seconds. Chromium is spoken to by its pipe (DevTools protocol).
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
        ours, theirs = os.pipe(), os.pipe()
        self.process = subprocess.Popen(
            ['sh', '-c', f'exec "$0" "$@" 3<&{ours[0]} 4>&{theirs[1]}', program, '--headless=new', '--no-sandbox',
             '--disable-gpu', '--disable-dev-shm-usage', '--window-size=1400,1000', f'--user-data-dir={profile}',
             '--remote-debugging-pipe', 'about:blank'],
            pass_fds=(ours[0], theirs[1]), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(ours[0])
        os.close(theirs[1])
        self.out, self.inp = os.fdopen(ours[1], 'wb', 0), os.fdopen(theirs[0], 'rb')
        self.rest, self.last, self.events, self.session = b'', 0, [], None

    def message(self):
        while b'\0' not in self.rest:
            more = os.read(self.inp.fileno(), 1 << 20)
            if not more:
                sys.exit('Chromium ended')
            self.rest += more
        text, self.rest = self.rest.split(b'\0', 1)
        return json.loads(text)

    def call(self, method, **params):
        self.last += 1
        message = {'id': self.last, 'method': method, 'params': params}
        if self.session:
            message['sessionId'] = self.session
        self.out.write(json.dumps(message).encode() + b'\0')
        while True:
            answer = self.message()
            if answer.get('id') == self.last:
                assert 'error' not in answer, (method, answer)
                return answer['result']
            self.events.append(answer)

    def until(self, method):
        while not any(event.get('method') == method for event in self.events):
            self.events.append(self.message())

    def value(self, script):
        answer = self.call('Runtime.evaluate', expression=script, returnByValue=True, awaitPromise=True)
        assert 'exceptionDetails' not in answer, answer
        return answer['result'].get('value')


def check(browser, page, cases):
    target = browser.call('Target.createTarget', url='about:blank')['targetId']
    browser.session = browser.call('Target.attachToTarget', targetId=target, flatten=True)['sessionId']
    for domain in ('Page', 'Runtime', 'Log', 'Network'):
        browser.call(domain + '.enable')
    start = time.monotonic()
    browser.call('Page.navigate', url=pathlib.Path(page).absolute().as_uri())
    browser.until('Page.loadEventFired')
    seconds = time.monotonic() - start
    shown = "[...document.querySelectorAll('article:not([hidden])')]"
    ids = shown + ".map(one => one.querySelector('h2 span').textContent)"
    first = browser.value(ids)
    assert len(first) == cases, (len(first), cases)

    def press(row, name):
        browser.value(f'document.querySelector(`#{row} button[data-{name}]`).click()')
        return browser.value(ids)

    up, down = press('sort', 'column=id'), press('sort', 'column=id')
    assert up == down[::-1] and sorted(up) == sorted(first), 'ids are sorted both ways'
    numbers = browser.value(f"document.querySelector('[data-column=seconds]').click(), {shown}.map(one => "
                            "Number([...one.querySelectorAll('dt')].find(dt => dt.textContent == 'seconds')"
                            ".nextElementSibling.textContent))")
    assert numbers == sorted(numbers), 'seconds are sorted as numbers'
    assert press('sort', 'column=""') == first, 'the worst are first again'
    failed = press('show', 'status=failed')
    assert failed and failed == first[:len(failed)] and len(failed) < cases, failed
    press('show', 'status=""')
    browser.value(f"find.value = {json.dumps(up[-1])}, find.dispatchEvent(new Event('input'))")
    found = browser.value(ids)
    assert up[-1] in found and (len(found) < cases or cases < 4), found
    browser.value("find.value = '', find.dispatchEvent(new Event('input'))")
    assert browser.value('document.documentElement.scrollWidth <= innerWidth'), 'nothing runs out of the window'
    scrolled = browser.value("""new Promise(done => { const start = performance.now();
        document.querySelector('article:last-of-type').scrollIntoView();
        requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now() - start))); })""")
    assert scrolled < 2000, scrolled
    assert browser.value('scrollY > 0') or cases < 4
    browser.value('scrollTo(0, 0)')
    loaded = browser.value("""new Promise(done => { const end = () => { const images = [...document.images].slice(0, 3);
        images.every(i => i.complete) ? done(images.map(i => i.naturalWidth)) : setTimeout(end, 50); }; end(); })""")
    assert loaded and all(loaded), ('pictures are shown', loaded)
    for event in browser.events:
        method, params = event.get('method'), event.get('params')
        assert method not in ('Runtime.exceptionThrown', 'Runtime.consoleAPICalled', 'Log.entryAdded'), event
        if method == 'Network.requestWillBeSent':
            assert params['request']['url'].startswith(('file://', 'data:')), params['request']['url']
    print(f'{cases} cases: loaded in {seconds:.2f} s, scrolled to the end in {scrolled:.0f} ms')


def main():
    program, page, cases = sys.argv[1], sys.argv[2], int(sys.argv[3])
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        browser = Browser(program, profile)
        try:
            check(browser, page, cases)
            if len(sys.argv) > 4:
                picture = browser.call('Page.captureScreenshot')['data']
                pathlib.Path(sys.argv[4]).write_bytes(base64.b64decode(picture))
        finally:
            browser.process.kill()
            browser.process.wait()


if __name__ == '__main__':
    main()
