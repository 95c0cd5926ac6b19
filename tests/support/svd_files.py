# SPDX-License-Identifier: Apache-2.0
"""A small SVD file with what vendors write."""

CHIP = """<?xml version="1.0" encoding="utf-8"?>
<device schemaVersion="1.3">
  <vendorID>ACME</vendorID>
  <name>CHIP</name>
  <width>32</width>
  <resetMask>0xFFFFFF00</resetMask>
  <peripherals>
    <peripheral>
      <name>TIMER[%s]</name>
      <dim>2</dim>
      <dimIncrement>0x1000</dimIncrement>
      <description>Counts
        events</description>
      <baseAddress>0x40000000</baseAddress>
      <addressBlock><offset>0</offset><size>0x100</size><usage>registers</usage></addressBlock>
      <interrupt><name>TIMER</name><value>7</value></interrupt>
      <registers>
        <register>
          <name>CTRL</name>
          <addressOffset>0x0</addressOffset>
          <resetValue>0x1ff</resetValue>
          <fields>
            <field><name>EN</name><bitRange>[0:0]</bitRange>
              <enumeratedValues>
                <name>SWITCH</name>
                <enumeratedValue><name>OFF</name><value>0</value></enumeratedValue>
                <enumeratedValue><name>ON</name><description>runs</description><value>#1</value></enumeratedValue>
                <enumeratedValue><name>ANY</name><isDefault>true</isDefault></enumeratedValue>
              </enumeratedValues>
            </field>
            <field><name>LOOP</name><lsb>1</lsb><msb>1</msb><enumeratedValues derivedFrom="SWITCH"/></field>
            <field><dim>2</dim><dimIncrement>4</dimIncrement><name>SRC%s</name><bitOffset>8</bitOffset>
              <bitWidth>4</bitWidth><access>write-only</access></field>
            <field><name>RESERVED</name><bitOffset>2</bitOffset><bitWidth>6</bitWidth></field>
            <field derivedFrom="EN"><name>STOP</name><bitOffset>16</bitOffset></field>
            <field><name>AGAIN</name><bitOffset>16</bitOffset></field>
            <field><name>TIMES</name><bitOffset>20</bitOffset><bitWidth>2</bitWidth>
              <enumeratedValues><enumeratedValue><name>MANY</name><value>#1x</value></enumeratedValue></enumeratedValues>
            </field>
          </fields>
        </register>
        <register><name>IRQ</name><addressOffset>4</addressOffset><modifiedWriteValues>oneToClear</modifiedWriteValues>
          <readAction>modify</readAction>
          <fields><field><name>A</name><bitOffset>0</bitOffset></field>
            <field><name>B</name><bitOffset>1</bitOffset><access>read-only</access></field>
            <field><name>C</name><bitOffset>2</bitOffset><modifiedWriteValues>oneToToggle</modifiedWriteValues></field>
          </fields>
        </register>
        <register derivedFrom="IRQ"><name>IRQ2</name><addressOffset>8</addressOffset></register>
        <register><name>ODD</name><addressOffset>12</addressOffset><size>12</size><access>writeOnce</access></register>
        <cluster>
          <dim>2</dim><dimIncrement>0x20</dimIncrement><dimIndex>A,B</dimIndex>
          <name>CH[%s]</name><addressOffset>0x40</addressOffset>
          <register><name>CC[%s]</name><dim>3</dim><dimIncrement>4</dimIncrement><addressOffset>0x0</addressOffset>
            <access>read-only</access></register>
          <cluster><name>DEEP</name><addressOffset>0x10</addressOffset>
            <register><name>R</name><size>8</size><addressOffset>0</addressOffset></register></cluster>
        </cluster>
      </registers>
    </peripheral>
    <peripheral derivedFrom="TIMER[%s]">
      <name>OTHER</name>
      <baseAddress>1073750016</baseAddress>
      <interrupt><name>OTHER</name><value>8</value></interrupt>
    </peripheral>
    <peripheral>
      <name>BOTH</name>
      <baseAddress>0x50000000</baseAddress>
      <registers>
        <register><name>MODE_IN</name><addressOffset>0</addressOffset></register>
        <register><name>MODE_OUT</name><alternateRegister>MODE_IN</alternateRegister><addressOffset>0</addressOffset></register>
        <register><name>LAST</name><addressOffset>4</addressOffset></register>
      </registers>
    </peripheral>
  </peripherals>
  <vendorExtensions><acme><anything/></acme></vendorExtensions>
</device>
"""
